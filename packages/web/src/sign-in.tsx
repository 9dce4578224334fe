/** Signing in: a token or an API key becomes a session in a cookie that scripts cannot read. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Crown } from "./parts/crown.tsx";
import { Problem } from "./parts/pieces.tsx";
import { signIn } from "./session.ts";

export function SignIn() {
  const [credential, setCredential] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Queen";
    field.current?.focus();
  }, []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await signIn(credential.trim());
    } catch (failure) {
      setError((failure as Error).message);
      setBusy(false);
      field.current?.focus();
    }
  };
  return (
    <main class="alone">
      <form class="card sign-in" onSubmit={submit}>
        <h1>
          <Crown />
          Sign in to Queen
        </h1>
        <label class="field">
          <span>Token or API key</span>
          <input
            ref={field}
            type="password"
            name="credential"
            required
            autocomplete="current-password"
            value={credential}
            onInput={(event) => setCredential(event.currentTarget.value)}
          />
        </label>
        <Problem error={error} />
        <button type="submit" class="primary" disabled={isBusy || credential.trim() === ""}>
          Sign in
        </button>
        <p class="soft">
          It is kept in a cookie that scripts cannot read, for twelve hours at most, and ends when the
          credential does.
        </p>
      </form>
    </main>
  );
}

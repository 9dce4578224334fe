/** Signing in, by user and password or with a token or an API key: it becomes a session in a cookie that scripts cannot read. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Crown } from "./parts/crown.tsx";
import { Problem } from "./parts/pieces.tsx";
import { type Shown, session, signIn } from "./session.ts";

type Way = "password" | "credential";

const WAYS: readonly (readonly [Way, string])[] = [
  ["password", "User and password"],
  ["credential", "Token or key"],
];
const KEY = "queen-sign-in";

/** The way that this browser took last. */
const wayBefore = (): Way => (localStorage.getItem(KEY) === "credential" ? "credential" : "password");

export function SignIn() {
  const hasPasswords = session.value!.passwords;
  const [way, setWay] = useState<Way>(hasPasswords ? wayBefore() : "credential");
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [credential, setCredential] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  const secret = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Queen";
    (first.current ?? secret.current)?.focus();
  }, []);
  const isPassword = way === "password";
  const isComplete = isPassword ? user !== "" && password !== "" : credential.trim() !== "";
  const choose = (chosen: Way): void => {
    setWay(chosen);
    setError(undefined);
    localStorage.setItem(KEY, chosen);
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const shown: Shown = isPassword ? { user, password } : { credential: credential.trim() };
      await signIn(shown);
    } catch (failure) {
      setError((failure as Error).message);
      setBusy(false);
      secret.current?.focus();
    }
  };
  return (
    <main class="alone">
      <form class="card sign-in" onSubmit={submit}>
        <h1>
          <Crown />
          Sign in to Queen
        </h1>
        {hasPasswords && (
          <fieldset class="ways">
            <legend>Sign in with</legend>
            {WAYS.map(([each, label]) => (
              <label class="check" key={each}>
                <input type="radio" name="way" checked={way === each} onChange={() => choose(each)} />
                {label}
              </label>
            ))}
          </fieldset>
        )}
        {isPassword && (
          <label class="field">
            <span>User</span>
            <input
              ref={first}
              name="user"
              required
              maxLength={255}
              autocomplete="username"
              autocapitalize="none"
              spellcheck={false}
              value={user}
              onInput={(event) => setUser(event.currentTarget.value)}
            />
          </label>
        )}
        <label class="field" key={way}>
          <span>{isPassword ? "Password" : "Token or API key"}</span>
          <input
            ref={secret}
            type="password"
            name={way}
            required
            autocomplete={isPassword ? "current-password" : "off"}
            value={isPassword ? password : credential}
            onInput={(event) => (isPassword ? setPassword : setCredential)(event.currentTarget.value)}
          />
        </label>
        <Problem error={error} />
        <button type="submit" class="primary" disabled={isBusy || !isComplete}>
          Sign in
        </button>
        <p class="soft">
          You stay signed in here for twelve hours at most, by a cookie that scripts cannot read.
        </p>
      </form>
    </main>
  );
}

/** For credentials that may use some queues only, and see no lists: a queue is opened by its name. */
import { useState } from "preact/hooks";
import { go } from "../router.ts";
import { session } from "../session.ts";

export function OpenQueue() {
  const [name, setName] = useState("");
  const patterns = session.value?.queues;
  if (!patterns) return null;
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        go(["queues", name]);
      }}
    >
      <label class="field">
        <span>Queue, one of {patterns.join(", ")}</span>
        <input value={name} required onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}

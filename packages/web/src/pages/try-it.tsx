/** Trying it: push, pop and ack, each with the curl line that does the same. */
import { useState } from "preact/hooks";
import { type ApiAnswer, ApiError, api, BASE, call, type Method } from "../api.ts";
import { Code } from "../parts/code.tsx";
import { Json } from "../parts/json.tsx";
import { Badge, Head } from "../parts/pieces.tsx";
import { change, link, place } from "../router.ts";
import { may, session } from "../session.ts";

interface Popped {
  readonly transactionId: string;
  readonly partitionId: string;
  readonly leaseId: string;
  readonly consumerGroup: string;
}

interface Said {
  readonly status: number;
  readonly body: unknown;
}

/** A path with its query, and what is sent. */
interface Call {
  readonly method: Method;
  readonly path: string;
  readonly body?: unknown;
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The same by hand. The cookie of the page is not for scripts, so a credential must be put in. */
function curl({ method, path, body }: Call): string {
  const url = BASE.replace(/\/$/, "") + path;
  return [
    "curl",
    ...(method === "GET" || (method === "POST" && body !== undefined) ? [] : ["-X", method]),
    ...(session.value?.authentication ? ["-H", '"Authorization: Bearer $KEY"'] : []),
    quoted(url),
    ...(body === undefined ? [] : ["-d", quoted(JSON.stringify(body))]),
  ].join(" ");
}

async function send({ method, path, body }: Call): Promise<Said> {
  try {
    const answer: ApiAnswer<unknown> = await call(method, path, body);
    const reason = answer.headers.get("queen-empty-reason");
    return { status: answer.status, body: answer.body ?? (reason ? { "Queen-Empty-Reason": reason } : null) };
  } catch (error) {
    if (error instanceof ApiError)
      return { status: error.status, body: { error: error.message, code: error.code } };
    throw error;
  }
}

export function TryIt() {
  const { query } = place.value;
  const queue = query.get("queue") ?? "demo";
  const lane = query.get("lane") ?? "Default";
  const group = query.get("group") ?? "";
  const [payload, setPayload] = useState('{ "hello": "world" }');
  const [popped, setPopped] = useState<readonly Popped[]>([]);
  const parsed = parse(payload);
  const pop: Call = {
    method: "GET",
    path: api(["pop", "queue", queue], { batch: 10, wait: true, timeout: 2000, consumerGroup: group }),
  };
  const ack: Call = {
    method: "POST",
    path: api(["ack", "batch"]),
    body: {
      ...(group === "" ? {} : { consumerGroup: group }),
      acknowledgments: popped.map(({ transactionId, partitionId, leaseId }) => ({
        transactionId,
        partitionId,
        leaseId,
        status: "completed",
      })),
    },
  };
  return (
    <>
      <Head title="Try it">
        {may("read") && (
          <a class="button" href={link(["queues", queue])}>
            Open the queue
          </a>
        )}
      </Head>
      <div class="filters">
        <Field name="queue" label="Queue" value={queue} />
        <Field name="lane" label="Lane" value={lane} />
        <Field name="group" label="Consumer group, queue mode if empty" value={group} />
      </div>
      <div class="steps">
        {may("produce") && (
          <Step
            title="Push"
            note="The queue and the lane are made by their first message."
            call={{
              method: "POST",
              path: api(["push"]),
              body: { items: [{ queue, partition: lane, payload: parsed.value }] },
            }}
            isOff={!parsed.isValid}
          >
            <label class="field">
              <span>Payload, any JSON</span>
              <textarea rows={3} value={payload} onInput={(event) => setPayload(event.currentTarget.value)} />
            </label>
            {!parsed.isValid && <p class="text-bad">This is no JSON.</p>}
          </Step>
        )}
        {may("consume") && (
          <>
            <Step
              title="Pop"
              note="Up to ten messages under a lease; it waits two seconds for one."
              call={pop}
              onSaid={({ body }) => setPopped((body as { messages?: Popped[] } | null)?.messages ?? [])}
            />
            <Step
              title="Ack"
              note={popped.length === 0 ? "Pop something first." : "What was popped is finished."}
              call={ack}
              isOff={popped.length === 0}
              onSaid={({ status }) => {
                if (status === 200) setPopped([]);
              }}
            />
          </>
        )}
      </div>
    </>
  );
}

function Field({ name, label, value }: { name: string; label: string; value: string }) {
  return (
    <label class="field">
      <span>{label}</span>
      <input name={name} value={value} onInput={(event) => change({ [name]: event.currentTarget.value })} />
    </label>
  );
}

function Step(props: {
  readonly title: string;
  readonly note: string;
  readonly call: Call;
  readonly isOff?: boolean;
  readonly onSaid?: (said: Said) => void;
  readonly children?: preact.ComponentChildren;
}) {
  const { title, note, isOff = false, onSaid, children } = props;
  const [said, setSaid] = useState<Said>();
  const [isBusy, setBusy] = useState(false);
  const line = curl(props.call);
  const run = async (): Promise<void> => {
    setBusy(true);
    const answer = await send(props.call);
    setSaid(answer);
    onSaid?.(answer);
    setBusy(false);
  };
  return (
    <section class="card step" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span class="soft">{note}</span>
      </header>
      {children}
      <Code label={`curl line of ${title}`} text={line} copy="Copy curl">
        {line}
      </Code>
      <div class="actions">
        <button type="button" class="primary" disabled={isOff || isBusy} onClick={() => void run()}>
          {title}
        </button>
        <span role="status">
          {said && (
            <Badge tone={said.status > 0 && said.status < 400 ? "good" : "bad"}>
              {said.status || "no answer"}
            </Badge>
          )}
        </span>
      </div>
      {said && said.body !== null && <Json value={said.body} label={`Answer to ${title}`} />}
    </section>
  );
}

function parse(text: string): { isValid: boolean; value: unknown } {
  try {
    return { isValid: true, value: JSON.parse(text) };
  } catch {
    return { isValid: false, value: null };
  }
}

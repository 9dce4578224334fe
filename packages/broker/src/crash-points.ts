/**
 * A crash point is a place where a worker kills itself if a test asks for it, so that it can be shown what is
 * left when it dies just there. QUEEN_CRASH_AT=push.sent:7 means: when `push.sent` is passed for the seventh
 * time. Without the variable a point does nothing.
 *
 *   <kind>.unsent   a batch was made, PostgreSQL knows nothing of it     kind: push, pop, ack, transaction,
 *   <kind>.sent     the call is on its way                                     renew_lease
 *   <kind>.done     it is committed, nobody was told
 *   answer.half     the first half of an answer has left
 */
const [point, time = "1"] = (process.env.QUEEN_CRASH_AT ?? "").split(":");
let passed = 0;

export function crashPoint(subject: string, step: string): void {
  if (point && isTime(subject, step)) die();
}

/** Whether the worker is to die here, where something must be done before. */
export const isCrashPoint = (subject: string, step: string): boolean =>
  Boolean(point) && isTime(subject, step);

export function die(): void {
  process.kill(process.pid, "SIGKILL");
}

function isTime(subject: string, step: string): boolean {
  if (point !== `${subject}.${step}`) return false;
  passed++;
  return passed === Number(time);
}

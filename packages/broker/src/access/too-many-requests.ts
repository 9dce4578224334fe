/** A client sends more than it may; the error says after how long it may go on. */
import { BrokerError } from "@queen/protocol";

export class TooManyRequests extends BrokerError {
  readonly waitMs: number;

  constructor(message: string, waitMs: number) {
    super("TOO_MANY_REQUESTS", message);
    this.waitMs = waitMs;
  }
}

/** The handlers of pauses: pause, resume, list. */
import type { PausePlace, Pausing } from "../control/pausing.ts";
import { durationText } from "../operations/duration.ts";
import { checkName } from "../operations/names.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import { callerOf } from "./caller.ts";
import type { Answer, Request } from "./route.ts";

export interface PauseBody {
  readonly partition?: string | null | undefined;
  readonly consumerGroup?: string | null | undefined;
  readonly reason?: string | null | undefined;
}

export class PauseRoutes {
  readonly #pausing: Pausing;

  constructor(pausing: Pausing) {
    this.#pausing = pausing;
  }

  async pause(request: Request, body: PauseBody): Promise<Answer> {
    const place = placeOf(request, body);
    const { changed, reason, by, atUs } = await this.#pausing.pause(
      place,
      callerOf(request),
      body.reason || null,
    );
    const since = isoMilliseconds(atUs);
    return json(200, {
      ...shown(place),
      paused: true,
      changed,
      pausedBy: by,
      pausedAt: since,
      reason,
      message: changed
        ? `${subject(place)} is paused.`
        : `${subject(place)} was paused already, by ${by} since ${since}; nothing was changed.`,
    });
  }

  async resume(request: Request, body: PauseBody): Promise<Answer> {
    const place = placeOf(request, body);
    const { changed, remaining } = await this.#pausing.resume(place);
    const said = changed ? `${subject(place)} is resumed` : `${subject(place)} was not paused`;
    return json(200, {
      ...shown(place),
      paused: false,
      changed,
      remainingPauses: remaining,
      message: remaining > 0 ? `${said}; pauses of this queue that are left: ${remaining}.` : `${said}.`,
    });
  }

  async list(request: Request): Promise<Answer> {
    const queue = queueOf(request);
    const pauses = await this.#pausing.list(queue);
    return json(200, {
      queue,
      pauses: pauses.map(({ partition, group, reason, by, atUs, seconds }) => ({
        partition,
        consumerGroup: group,
        reason,
        pausedBy: by,
        pausedAt: isoMilliseconds(atUs!),
        message: `${subject({ queue, partition, group })} is paused for ${durationText(seconds!)}.`,
      })),
    });
  }
}

const queueOf = (request: Request): string => checkName(request.params.queue, "queue", { allowEmpty: true });

function placeOf(request: Request, { partition, consumerGroup }: PauseBody): PausePlace {
  return {
    queue: queueOf(request),
    partition: partition == null ? null : checkName(partition, "partition"),
    group: consumerGroup == null ? null : checkName(consumerGroup, "consumerGroup"),
  };
}

const shown = ({ queue, partition, group }: PausePlace): Record<string, unknown> => ({
  success: true,
  queue,
  partition,
  consumerGroup: group,
});

function subject({ queue, partition, group }: PausePlace): string {
  const lane = partition === null ? "" : `, partition ${JSON.stringify(partition)}`;
  const whom = group === null ? "" : `, for group ${JSON.stringify(group)}`;
  return `Queue ${JSON.stringify(queue)}${lane}${whom}`;
}

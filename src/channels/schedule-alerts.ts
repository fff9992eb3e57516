import type { Application } from '../core/application.ts';
import { localTime } from '../lib/local-time.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { pause } from '../lib/pause.ts';
import type { GuideProblem } from './scheduled/guide-problems.ts';
import { readScheduleSpec, type ScheduleSpec } from './scheduled/spec.ts';
import { SCHEDULED } from './channel-kind.ts';
import type { Guides } from './guides.ts';

/** Pause between two checks for new channels and definitions. */
const LOOK_MS = 5000;
/** Pause before an unchanged definition is checked again: time has passed, and files come and go. */
const AGAIN_MS = 600_000;

const CODES = {
  gap: 'SCHEDULE_GAP',
  overlap: 'SCHEDULE_OVERLAP',
  unreadable: 'SCHEDULE_FILE_UNREADABLE',
} as const satisfies Record<GuideProblem['type'], string>;

export interface ScheduleAlertsOptions {
  readonly registry: Registry;
  readonly tasks: Pick<Tasks, 'reports' | 'definitions'>;
  readonly guides: Pick<Guides, 'here'>;
  readonly log: Logger;
}

interface Watched {
  readonly spec: unknown;
  readonly at: number;
  /** Problems for which an alert was raised. */
  readonly reported: ReadonlySet<string>;
}

/** Raises one alert for each problem in the next 24 hours of the schedules that this node plays. */
export class ScheduleAlerts {
  readonly #options: ScheduleAlertsOptions;
  readonly #closed = new AbortController();
  #watched = new Map<string, Watched>();

  constructor(options: ScheduleAlertsOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#watch();
  }

  /** Idempotent. */
  close(): void {
    this.#closed.abort();
  }

  /** Checks all schedules that are due. */
  async look(): Promise<void> {
    const before = this.#watched;
    this.#watched = new Map();
    for (const { application, id } of this.#running()) {
      const key = `${application.internalName}/${id}`;
      const known = before.get(key);
      const { vhost, name: app } = application;
      const name = { kind: SCHEDULED.name, vhost: vhost.name, app, id };
      const spec = this.#options.tasks.definitions.get(name)?.spec;
      const isDue = known?.spec !== spec || performance.now() - (known?.at ?? 0) >= AGAIN_MS;
      if (known !== undefined && !isDue) this.#watched.set(key, known);
      const schedule = readScheduleSpec(spec);
      if (!isDue || schedule === undefined) continue;
      const reported = await this.#report(application, id, schedule, known?.reported ?? new Set());
      this.#watched.set(key, { spec, at: performance.now(), reported });
    }
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closed;
    for (; !signal.aborted; await pause(LOOK_MS, signal)) {
      try {
        await this.look();
      } catch (error) {
        this.#options.log.error({ err: error }, 'the schedules of channels could not be looked through for problems');
      }
    }
  }

  *#running(): IterableIterator<{ readonly application: Application; readonly id: string }> {
    const { registry, tasks } = this.#options;
    for (const vhost of registry.vhosts.values()) {
      for (const application of vhost.applications.values()) {
        if (!SCHEDULED.isEnabled(application.config)) continue;
        const reports = tasks.reports({ kind: SCHEDULED.name, vhost: vhost.name, app: application.name });
        for (const id of reports.keys()) yield { application, id };
      }
    }
  }

  /** @returns the problems for which an alert was raised, now or before */
  async #report(
    application: Application,
    stream: string,
    spec: ScheduleSpec,
    reported: ReadonlySet<string>,
  ): Promise<ReadonlySet<string>> {
    const { registry, guides } = this.#options;
    const now = Date.now();
    const { problems } = await guides.here(application, spec, { from: now, to: now + 1 });
    const current = new Map(problems.map((problem) => [keyOf(problem), problem]));
    for (const [key, problem] of current) {
      if (reported.has(key)) continue;
      const messages = [{ code: CODES[problem.type], description: describeProblem(problem) }];
      registry.emit('alert', {
        application,
        stream: application.stream(stream),
        name: stream,
        type: 'INGRESS',
        messages,
      });
    }
    return new Set(current.keys());
  }
}

/**
 * Key of a problem that stays the same as time passes, though a gap begins later and items of a repeated program
 * recur.
 */
function keyOf({ type, begins, ends, program, url }: GuideProblem): string {
  const times = { gap: [ends], overlap: [begins], unreadable: [] }[type];
  return JSON.stringify([type, program, url, ...times]);
}

/** Describes a problem of a schedule in a sentence for its operator. */
export function describeProblem({ type, begins, ends, program, url }: GuideProblem): string {
  const from = localTime(begins);
  const until = ends === undefined ? undefined : localTime(ends);
  if (type === 'unreadable') return `${url} of the program "${program}", scheduled at ${from}, cannot be read`;
  if (type === 'overlap')
    return `the program "${program}" is cut at ${from}, when the next one begins: its items last until ${until}`;
  return `nothing is scheduled from ${from} on${until === undefined ? '' : `, until ${until}`}`;
}

import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log.ts';

const CHECK_MS = 10_000;
const IDLE_MS = 60_000;

/** Closes applications that were made on demand and had no stream for a minute (Modules/DynamicAppRemoval). */
export class IdleApplications {
  readonly #registry: Registry;
  readonly #log: Logger;
  readonly #idleSince = new WeakMap<object, number>();
  readonly #timer = setInterval(() => this.check(performance.now()), CHECK_MS).unref();

  constructor(registry: Registry, log: Logger) {
    this.#registry = registry;
    this.#log = log;
  }

  /** @param now milliseconds on a monotonic clock */
  check(now: number): void {
    for (const vhost of this.#registry.vhosts.values()) {
      for (const application of vhost.applications.values()) {
        if (!application.dynamic) continue;
        if (application.inUse) {
          this.#idleSince.delete(application);
        } else if (now - (this.#idleSince.get(application) ?? now) >= IDLE_MS) {
          this.#log.info({ application: application.internalName }, 'an application made on demand is idle: removed');
          application.close('the application was idle');
        } else if (!this.#idleSince.has(application)) {
          this.#idleSince.set(application, now);
        }
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

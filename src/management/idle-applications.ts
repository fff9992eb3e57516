import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';

export interface IdleApplicationsOptions {
  readonly registry: Registry;
  readonly inUse: (vhost: string, app: string) => boolean;
  readonly log: Logger;
}

const CHECK_MS = 10_000;
const IDLE_MS = 60_000;

/** Closes on-demand applications without a stream on any node for a minute (Modules/DynamicAppRemoval). */
export class IdleApplications {
  readonly #options: IdleApplicationsOptions;
  readonly #idleSince = new WeakMap<object, number>();
  readonly #timer = setInterval(() => this.check(performance.now()), CHECK_MS).unref();

  constructor(options: IdleApplicationsOptions) {
    this.#options = options;
  }

  /** @param now milliseconds of a monotonic clock */
  check(now: number): void {
    const { registry, inUse, log } = this.#options;
    for (const vhost of registry.vhosts.values()) {
      for (const application of vhost.applications.values()) {
        if (!application.dynamic) continue;
        if (application.inUse || inUse(vhost.name, application.name)) {
          this.#idleSince.delete(application);
        } else if (now - (this.#idleSince.get(application) ?? now) >= IDLE_MS) {
          log.info(
            { application: application.internalName },
            'an application that was created on demand was idle, and has been removed',
          );
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

import type { AlertConfig } from '../config/model.ts';
import type { Environment } from '../config/macros.ts';
import type { Alert, Registry } from '../core/registry.ts';
import type { Logger } from '../log.ts';
import { IngressWatch } from './ingress-watch.ts';
import { notification, type Sender } from './notification.ts';
import { Notifier } from './notifier.ts';
import { Rules } from './rules.ts';
import { followStreams } from './stream-status.ts';

export interface AlertsOptions {
  readonly registry: Registry;
  readonly config: AlertConfig;
  readonly sender: Sender;
  /** What a relative RulesFile starts from. */
  readonly folder: string;
  readonly env: Environment;
  readonly log: Logger;
}

/**
 * Sends what an operator should know of to the server of `<Alert>` (facts/02-config.md): what its rules find, and every alert
 * that another part of this node raises. The node that has a stream tells of it, so one message goes out however many nodes
 * there are.
 */
export class Alerts {
  readonly #rules: Rules;
  readonly #watch: IngressWatch;
  readonly #notifier: Notifier;

  constructor({ registry, config, sender, folder, env, log }: AlertsOptions) {
    const { url, secretKey, timeout } = config;
    this.#rules = new Rules(config, folder, env, log);
    this.#notifier = new Notifier({ url, secretKey, timeout }, log);
    const rules = () => this.#rules.current;
    followStreams(registry, rules, (subject, message) => this.#notifier.send(notification(subject, [message], sender)));
    registry.on('alert', ({ application, messages, ...subject }) =>
      this.#notifier.send(notification({ ...subject, application: application.internalName }, messages, sender)),
    );
    this.#watch = new IngressWatch(registry, () => rules().ingress);
  }

  /** Sends what is left, for a moment. Idempotent. */
  async close(): Promise<void> {
    this.#watch.close();
    this.#rules.close();
    await this.#notifier.close();
  }
}

/** Logs every alert, whether or not it is sent anywhere. */
export function logAlerts(registry: Registry, log: Logger): void {
  registry.on('alert', ({ application, name, type, messages, resolved }: Alert) => {
    const codes = messages.map(({ code }) => code).join(' ');
    const text = messages.map(({ description }) => description).join('; ');
    const stream = `${application.internalName}/${name}`;
    const raised = { event: 'alert.raised', code: codes, stream } as const;
    if (resolved === true) log.info({ event: 'alert.resolved', stream }, text);
    else if (type === 'INGRESS') log.warn(raised, text);
    else log.error(raised, text);
  });
}

import type { AlertConfig } from '../config/model.ts';
import type { Environment } from '../config/macros.ts';
import type { Alert, Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { Queues } from '../stats/queues.ts';
import { ALERT_CODES } from './codes.ts';
import { CongestionWatch } from './congestion-watch.ts';
import { IngressWatch } from './ingress-watch.ts';
import { notification, type Sender } from './notification.ts';
import { Notifier } from './notifier.ts';
import { Rules } from './rules.ts';
import { followStreams } from './stream-status.ts';

export interface AlertsOptions {
  readonly registry: Registry;
  readonly queues: Queues;
  readonly config: AlertConfig;
  readonly sender: Sender;
  /** Base of a relative RulesFile. */
  readonly folder: string;
  readonly env: Environment;
  readonly log: Logger;
}

/**
 * Sends alerts to the server of `<Alert>` (docs/compatibility.md#alerts): the findings of its rules, and every alert that
 * another part of this node raises. Only the node that has a stream sends alerts about it, so that each is sent once in a
 * cluster.
 */
export class Alerts {
  readonly #rules: Rules;
  readonly #notifier: Notifier;
  readonly #undo: readonly (() => void)[];

  constructor({ registry, queues, config, sender, folder, env, log }: AlertsOptions) {
    const { url, secretKey, timeout } = config;
    this.#rules = new Rules(config, folder, env, log);
    this.#notifier = new Notifier({ url, secretKey, timeout }, log);
    const rules = () => this.#rules.current;
    const send = ({ application, messages, queues: congested, ...subject }: Alert): void =>
      this.#notifier.send(
        notification({ ...subject, application: application.internalName }, messages, sender, congested),
      );
    const streams = followStreams(registry, rules, (subject, message) =>
      this.#notifier.send(notification(subject, [message], sender)),
    );
    registry.on('alert', send);
    const ingress = new IngressWatch(registry, () => rules().ingress);
    const congestion = new CongestionWatch(registry, queues, () => rules().internalQueueCongestion, sender.id);
    this.#undo = [
      () => ingress.close(),
      () => congestion.close(),
      streams,
      () => registry.off('alert', send),
      () => this.#rules.close(),
    ];
  }

  get undelivered(): number {
    return this.#notifier.undelivered;
  }

  /** Stops raising alerts, and sends the waiting ones, for a moment. Idempotent. */
  async close(): Promise<void> {
    for (const undo of this.#undo) undo();
    await this.#notifier.close();
  }
}

/** Logs every alert, whether or not it is sent to a server. @returns number of alerts so far, by code */
export function logAlerts(registry: Registry, log: Logger): ReadonlyMap<string, number> {
  // a series that begins with its first alert would hide the increase
  const raisings = new Map<string, number>(ALERT_CODES.map((code) => [code, 0]));
  registry.on('alert', ({ application, name, type, messages, resolved }: Alert) => {
    const codes = messages.map(({ code }) => code).join(' ');
    const text = messages.map(({ description }) => description).join('; ');
    const stream = `${application.internalName}/${name}`;
    const raised = { event: 'alert.raised', code: codes, stream } as const;
    if (resolved === true) {
      log.info({ event: 'alert.resolved', stream }, text);
      return;
    }
    for (const { code } of messages) raisings.set(code, (raisings.get(code) ?? 0) + 1);
    if (type === 'EGRESS') log.error(raised, text);
    else log.warn(raised, text);
  });
  return raisings;
}

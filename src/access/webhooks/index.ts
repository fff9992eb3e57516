import { randomUUID } from 'node:crypto';
import type { Cluster } from '#cluster';
import type { VirtualHostConfig } from '../../config/model.ts';
import type { Registry } from '../../core/registry.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { ControlServerError, type ControlAnswer } from '../../control-server/post.ts';
import { accessDenied, Denial } from '../denial.ts';
import { isEnabled } from '../../config/enables.ts';
import type { Guard, Verdict } from '../guard.ts';
import type { WebhookCall, WebhookSessions } from '../webhook-session.ts';
import type { AccessRequest } from '../request.ts';
import { readAnswer, type Answer } from './answer.ts';
import type { CallKind } from './control-line.ts';
import { Closings } from './closings.ts';
import { ControlLines, type ControlServers } from './control-lines.ts';
import { LeftSessions } from './left-sessions.ts';
import { OpenSessions, type Opened } from './open-sessions.ts';
import { targetOf } from './new-url.ts';
import { callOf, payload } from './payload.ts';
import { Rechecks } from './rechecks.ts';

export interface AdmissionWebhooksOptions {
  readonly cluster: Pick<Cluster, 'self' | 'nodes' | 'lives' | 'records' | 'events'>;
  readonly registry: Pick<Registry, 'vhosts' | 'on' | 'off'>;
  readonly log: Logger;
  /** Calls of control servers hide the addresses of clients. */
  readonly hidesClients?: boolean;
}

/** Deleted virtual hosts whose control servers are known. */
const MAX_DELETED = 1000;

/**
 * Asks the control servers of virtual hosts whether clients may connect, and notifies them of the end of each session that
 * they have allowed, once in the cluster (docs/compatibility.md#control-servers). Without an answer the client is rejected.
 */
export class AdmissionWebhooks {
  readonly #options: AdmissionWebhooksOptions;
  readonly #log: Logger;
  readonly #lines: ControlLines;
  readonly #closings: Closings;
  readonly #sessions: OpenSessions;
  readonly #rechecks: Rechecks;
  readonly #faults: FaultLog;
  readonly #left: LeftSessions;
  #closed: Promise<void> | undefined;
  /** Control servers of deleted virtual hosts, the last one last: sessions that another node opened are closed after them. */
  readonly #deleted = new Map<string, ControlServers>();
  /** Servers to notify of the end, also when the virtual host is another by then, or none. */
  readonly #servers = new WeakMap<Opened, ControlServers>();

  constructor(options: AdmissionWebhooksOptions) {
    const { cluster, registry, log } = options;
    this.#options = options;
    this.#log = log.child({ module: 'webhooks' });
    this.#lines = new ControlLines(this.#log);
    this.#closings = new Closings(this.#lines, this.#log);
    const notify = (session: Opened, at: number): void => this.#notify(session, at);
    const onFault = (err: Error): void => this.#log.error({ err }, 'looking after open sessions failed');
    this.#faults = new FaultLog(this.#log);
    this.#rechecks = new Rechecks({
      intervalOf: (vhost) => this.#configOf(vhost)?.recheckInterval ?? 0,
      ask: (vhost, call, isWanted) => this.#askAgain(vhost, call, isWanted),
      faults: this.#faults,
      onFault,
    });
    const onAway = (): void => this.#left.lookIn();
    this.#sessions = new OpenSessions({ cluster, notify, onFault, onAway, rechecks: this.#rechecks });
    const isUsed = (): boolean =>
      [...registry.vhosts.values()].some(({ config }) => config.admissionWebhooks !== undefined);
    registry.on('vhostClosed', this.#onVhostClosed);
    this.#left = new LeftSessions({ cluster, own: this.#sessions, notify, isUsed, onFault });
  }

  get counts(): ControlLines['counts'] {
    return this.#lines.counts;
  }

  /** Running sessions that control servers have ended, asked again. */
  get refusedAgain(): number {
    return this.#rechecks.refused;
  }

  get sessions(): WebhookSessions {
    return this.#sessions;
  }

  /** Asks about clients of the modules that `Enables` names. */
  readonly guard: Guard = (request, { name, config: { admissionWebhooks: config } }) => {
    if (config === undefined || !isEnabled(config.enables, request)) return undefined;
    return (signal) => this.#ask(request, name, serversOf(config), signal);
  };

  /** Waits, for a few seconds at most, until the end of each ended session is sent. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#options.registry.off('vhostClosed', this.#onVhostClosed);
    this.#rechecks.close();
    await this.#left.close();
    await this.#sessions.settled();
    await this.#closings.close();
    this.#lines.close();
    this.#faults.close();
  }

  #configOf(vhost: string): VirtualHostConfig['admissionWebhooks'] {
    return this.#options.registry.vhosts.get(vhost)?.config.admissionWebhooks;
  }

  readonly #onVhostClosed = ({ name, config: { admissionWebhooks } }: VirtualHost): void => {
    if (admissionWebhooks === undefined) return;
    this.#deleted.delete(name);
    this.#deleted.set(name, serversOf(admissionWebhooks));
    for (const oldest of this.#deleted.keys()) {
      if (this.#deleted.size <= MAX_DELETED) break;
      this.#deleted.delete(oldest);
    }
  };

  async #ask(
    request: AccessRequest,
    vhost: string,
    servers: ControlServers,
    signal: AbortSignal | undefined,
  ): Promise<Verdict> {
    const call = callOf(request, this.#options.hidesClients);
    const { allowed, newUrl, lifetime, reason } = await this.#answer(
      servers,
      payload(call, 'opening', call.time),
      signal,
    );
    if (!allowed) {
      const why = `the control server does not allow it: ${reason || 'no reason given'}`;
      throw accessDenied(new Denial('webhookRefused', why));
    }
    if (reason !== '') this.#log.debug({ reason }, 'the control server allowed a client');
    // no control server waits for the end of one answer
    const isSession = request.protocol !== 'thumbnail';
    const session = {
      id: randomUUID(),
      vhost,
      call: { ...call, ...(newUrl !== undefined && { new_url: newUrl }) },
      ...(lifetime !== undefined && { lifetime }),
    };
    if (isSession) {
      this.#servers.set(session, servers);
      this.#sessions.adopt(session);
    }
    const target = newUrl === undefined ? undefined : targetOf(newUrl, request);
    if (newUrl !== undefined && target === undefined) {
      if (isSession) this.#sessions.close(session);
      throw failed('it sent the client to a URL that its protocol cannot go to');
    }
    return {
      ...(target !== undefined && { target }),
      ...(lifetime !== undefined && { until: Date.now() + lifetime }),
      ...(isSession && { session }),
    };
  }

  async #answer(servers: ControlServers, body: object, signal: AbortSignal | undefined): Promise<Answer> {
    try {
      return this.#read('opening', await this.#lines.ask('opening', servers, body, () => signal?.aborted !== true));
    } catch (error) {
      if (!(error instanceof ControlServerError)) throw error;
      throw failed(error.message);
    }
  }

  /** Sends the opening of a running session again. @throws ControlServerError */
  async #askAgain(vhost: string, call: WebhookCall, isWanted: () => boolean): Promise<Answer> {
    const config = this.#configOf(vhost);
    if (config === undefined) throw new ControlServerError('the virtual host has no control server', false);
    // what the client asked for: where it was sent is settled
    const { new_url: _, ...first } = call;
    const opening = payload(first, 'opening', call.time);
    return this.#read('recheck', await this.#lines.ask('recheck', serversOf(config), opening, isWanted));
  }

  /** @throws ControlServerError for an answer that is none, which is counted */
  #read(kind: CallKind, answer: ControlAnswer): Answer {
    try {
      return readAnswer(answer);
    } catch (error) {
      // another status is counted already
      if (answer.status === 200) this.counts[kind].failed++;
      throw error;
    }
  }

  #notify(session: Opened, at: number): void {
    const config = this.#configOf(session.vhost);
    const servers =
      this.#servers.get(session) ?? (config === undefined ? this.#deleted.get(session.vhost) : serversOf(config));
    if (servers === undefined) return this.#closings.lose(`the virtual host ${session.vhost} has no control server`);
    if (!('call' in session) || session.call === undefined)
      return this.#closings.lose('the store of the cluster has lost what they were');
    this.#closings.notify(servers, session.call, at);
  }
}

function failed(reason: string): Error {
  return accessDenied(new Denial('webhookFailed', `the control server failed: ${reason}`));
}

function serversOf({
  controlServerUrl,
  secretKey,
  timeout,
}: NonNullable<VirtualHostConfig['admissionWebhooks']>): ControlServers {
  return { urls: controlServerUrl.split(',').map((url) => url.trim()), secretKey, timeout };
}

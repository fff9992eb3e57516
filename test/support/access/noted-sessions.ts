import type { Guard } from '../../../src/access/guard.ts';
import type { WebhookSessionId, WebhookSessions } from '../../../src/access/webhook-session.ts';
import type { Target } from '../../../src/access/request.ts';

/** Webhook sessions of a node, and a guard that makes one for each viewer: `a1`, `a2` and so on on node `a`. */
export class NotedSessions implements WebhookSessions {
  readonly #node: string;
  #count = 0;
  /** What happened, in order: `close a1: why`. */
  readonly events: string[] = [];
  /** Milliseconds for which viewers may stay; undefined: for ever. */
  lifetime: number | undefined;
  target: Partial<Target> | undefined;

  constructor(node: string) {
    this.#node = node;
  }

  get opened(): number {
    return this.#count;
  }

  /** Reasons for which sessions were closed: `a1: why`. */
  get closed(): string[] {
    return this.events.filter((event) => event.startsWith('close ')).map((event) => event.slice('close '.length));
  }

  readonly guard: Guard = ({ direction }, { name }) => {
    if (direction === 'incoming') return undefined;
    return async () => ({
      session: { id: `${this.#node}${++this.#count}`, vhost: name },
      ...(this.lifetime !== undefined && { until: Date.now() + this.lifetime }),
      ...(this.target !== undefined && { target: this.target }),
    });
  };

  close({ id }: WebhookSessionId, reason: string): void {
    this.events.push(`close ${id}: ${reason}`);
  }

  adopt({ id, vhost }: WebhookSessionId): void {
    this.events.push(`adopt ${id} of ${vhost}`);
  }

  hold(): void {}

  resume(id: string, vhost: string): void {
    this.events.push(`resume ${id} of ${vhost}`);
  }

  /** Who goes on with it says so. */
  release(): void {}
}

/** A configuration of a virtual host that guards viewers of LL-HLS. */
export const GUARDED = {
  admissionWebhooks: {
    controlServerUrl: 'http://127.0.0.1/',
    secretKey: 'k',
    timeout: 3000,
    enables: { publishers: 'llhls', providers: '' },
  },
};

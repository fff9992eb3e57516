import { setTimeout as delay } from 'node:timers/promises';
import { isAble, type Cluster } from '#cluster';
import type { Registry } from '../../core/registry.ts';

/** A client that may be asked to reconnect. */
interface Publisher {
  /** @returns false for one that publishes nothing, or cannot be asked to reconnect */
  setHandsOver(handsOver: boolean): boolean;
  askToReconnect(): void;
}

export interface HandOverOptions {
  readonly registry: Pick<Registry, 'draining' | 'on' | 'off'>;
  /** Whether there is another node that takes publishers. */
  readonly hasSuccessor: () => boolean;
  readonly publishers: () => Iterable<Publisher>;
}

/** Time for balancers that check each second to notice that this node accepts no clients. */
const NOTICED_MS = 3000;
/** Time after which publishers that are still connected are asked again. */
const ROUND_MS = 5000;
/** Distance of two requests: each client that reconnects makes work for another node. */
const APART_MS = 20;

/**
 * Asks the publishers of a node that drains to reconnect. They publish here until they do so, and another node takes their streams
 * over.
 */
export class HandOver {
  readonly #options: HandOverOptions;
  readonly #onDraining = (draining: boolean): void => this.#follow(draining);
  #asking: AbortController | undefined;

  constructor(options: HandOverOptions) {
    this.#options = options;
    options.registry.on('draining', this.#onDraining);
    this.#follow(options.registry.draining);
  }

  /** Idempotent. */
  close(): void {
    this.#options.registry.off('draining', this.#onDraining);
    this.#asking?.abort();
  }

  #follow(draining: boolean): void {
    this.#asking?.abort();
    this.#asking = undefined;
    // before any client is asked: the store has to know it
    for (const publisher of this.#options.publishers()) publisher.setHandsOver(draining);
    if (!draining) return;
    this.#asking = new AbortController();
    void this.#ask(this.#asking.signal);
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const pause = (milliseconds: number): Promise<void> =>
      delay(milliseconds, undefined, { signal, ref: false }).catch(() => undefined);
    await pause(NOTICED_MS);
    while (!signal.aborted) {
      const { hasSuccessor, publishers } = this.#options;
      const asked = hasSuccessor() ? [...publishers()].filter((publisher) => publisher.setHandsOver(true)) : [];
      const apart = Math.min(APART_MS, ROUND_MS / (asked.length + 1));
      for (const publisher of asked) {
        if (signal.aborted) return;
        if (publisher.setHandsOver(true)) publisher.askToReconnect();
        await pause(apart);
      }
      await pause(ROUND_MS - apart * asked.length);
    }
  }
}

/** Whether a cluster has another node that takes RTMP publishers, as it describes itself. */
export function hasSuccessor(cluster: Pick<Cluster, 'self' | 'nodes'>): boolean {
  return cluster.nodes().some((node) => {
    const { addresses } = node.info;
    const takesRtmp = typeof addresses === 'object' && addresses !== null && 'rtmp' in addresses;
    return node.id !== cluster.self.id && isAble(node) && takesRtmp;
  });
}

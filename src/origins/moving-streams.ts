import { joinKey, type Cluster, type NodeIdentity } from '#cluster';
import type { StreamMeta, StreamName } from './stream-key.ts';

/** For how long a stream whose node has gone may come back before it counts as over. */
const MOVING_MS = 5000;
/** A node that dies may have many. */
const MAX_MOVING = 50_000;
/** A node that was last heard of so long ago, in milliseconds, may have died: they beat every second at least. */
const SILENT_MS = 1500;

/** A stream without an owner. */
export interface LeftStream {
  readonly name: StreamName;
  /** As its last owner described it. */
  readonly meta: StreamMeta;
  readonly owner: NodeIdentity;
}

/**
 * Streams that have had no owner for a moment, and may have another soon: the node that had them has died, has left the
 * cluster or is draining.
 */
export class MovingStreams {
  readonly #cluster: Pick<Cluster, 'nodes'>;
  readonly #onOver: (name: StreamName) => void;
  /** By key: the application that they are of, and when they count as over. */
  readonly #places = new Map<string, { readonly path: string; readonly timer: NodeJS.Timeout }>();
  /** By application, by key. */
  readonly #left = new Map<string, Map<string, LeftStream>>();

  /** @param onOver called for a stream that has no other owner in time */
  constructor(cluster: Pick<Cluster, 'nodes'>, onOver: (name: StreamName) => void) {
    this.#cluster = cluster;
    this.#onOver = onOver;
  }

  /** Its owner does not have it any more, for whatever reason: that the node has died may become known later. */
  add(key: string, stream: LeftStream): void {
    this.delete(key);
    if (this.#places.size >= MAX_MOVING) return;
    const path = joinKey(stream.name.vhost, stream.name.app);
    const timer = setTimeout(() => {
      this.delete(key);
      this.#onOver(stream.name);
    }, MOVING_MS).unref();
    this.#places.set(key, { path, timer });
    const streams = this.#left.get(path) ?? new Map<string, LeftStream>();
    this.#left.set(path, streams.set(key, stream));
  }

  /** It has an owner again. */
  delete(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    clearTimeout(place.timer);
    this.#places.delete(key);
    const streams = this.#left.get(place.path);
    streams?.delete(key);
    if (streams?.size === 0) this.#left.delete(place.path);
  }

  /** Whether any stream of an application that `concerns` accepts may have another owner soon. */
  has(vhost: string, app: string, concerns: (stream: LeftStream) => boolean): boolean {
    for (const stream of this.#left.get(joinKey(vhost, app))?.values() ?? [])
      if (concerns(stream) && this.#hasGone(stream.owner)) return true;
    return false;
  }

  close(): void {
    for (const key of [...this.#places.keys()]) this.delete(key);
  }

  #hasGone({ id, incarnation }: NodeIdentity): boolean {
    const row = this.#cluster.nodes().find((node) => node.id === id);
    return row?.incarnation !== incarnation || row.state !== 'ready' || row.silentMs >= SILENT_MS;
  }
}

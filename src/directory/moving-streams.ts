import { joinKey, type Cluster, type NodeIdentity } from '#cluster';
import type { StreamMeta, StreamName } from './stream-key.ts';

/** For how long a stream whose node has gone may come back before it counts as over. */
const MOVING_MS = 5000;
/** A node that dies may have many. */
const MAX_MOVING = 50_000;
/** A node that was last heard of so long ago, in milliseconds, has missed several beats, and may have died. */
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
  /** By key: the paths that they are found by, and when they count as over. */
  readonly #places = new Map<string, { readonly paths: readonly string[]; readonly timer: NodeJS.Timeout }>();
  /** By output stream, by key; by application as well those that may have had others: few, whatever the number of streams. */
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
    const paths = pathsOf(stream);
    const timer = setTimeout(() => {
      this.delete(key);
      this.#onOver(stream.name);
    }, MOVING_MS).unref();
    this.#places.set(key, { paths, timer });
    for (const path of paths) {
      const streams = this.#left.get(path) ?? new Map<string, LeftStream>();
      this.#left.set(path, streams.set(key, stream));
    }
  }

  /** It has an owner again. */
  delete(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    clearTimeout(place.timer);
    this.#places.delete(key);
    for (const path of place.paths) {
      const streams = this.#left.get(path);
      streams?.delete(key);
      if (streams?.size === 0) this.#left.delete(path);
    }
  }

  /**
   * Whether a stream that had an output stream, or may have been about to have it, may have another owner soon.
   * @param concerns whether it is such a stream
   */
  has(vhost: string, app: string, output: string, concerns: (stream: LeftStream) => boolean): boolean {
    for (const path of [joinKey(vhost, app, output), joinKey(vhost, app)]) {
      for (const stream of this.#left.get(path)?.values() ?? [])
        if (concerns(stream) && this.isLeaving(stream.owner)) return true;
    }
    return false;
  }

  /** Whether a node has died, left, or is about to: what it had may have another owner soon. */
  isLeaving({ id, incarnation }: NodeIdentity): boolean {
    const row = this.#cluster.nodes().find((node) => node.id === id);
    return row?.incarnation !== incarnation || row.state !== 'ready' || row.silentMs >= SILENT_MS;
  }

  close(): void {
    for (const key of [...this.#places.keys()]) this.delete(key);
  }
}

/** All output streams are known of one that is neither starting nor being closed, which takes away one after the other. */
function pathsOf({ name: { vhost, app }, meta: { live, outputs, starting } }: LeftStream): string[] {
  const paths = outputs.map((output) => joinKey(vhost, app, output));
  return live && starting === false ? paths : [...paths, joinKey(vhost, app)];
}

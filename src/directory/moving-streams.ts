import { joinKey, type Cluster, type NodeIdentity } from '#cluster';
import type { StreamMeta, StreamName } from './stream-key.ts';

/** Time in which a stream whose node has gone may return before it counts as over. */
const MOVING_MS = 5000;
/** Limit of streams: a node that dies may have many. */
const MAX_MOVING = 50_000;
/** A node silent for this long has missed several heartbeats, and may have died. */
const SILENT_MS = 1500;

export interface LeftStream {
  readonly name: StreamName;
  readonly meta: StreamMeta;
  readonly owner: NodeIdentity;
}

/** Streams that have lost their owner, which has died, has left the cluster or is draining, and may soon have another. */
export class MovingStreams {
  readonly #cluster: Pick<Cluster, 'nodes'>;
  readonly #onOver: (name: StreamName) => void;
  /** By key: paths in `#left`, and the timer after which the stream counts as over. */
  readonly #places = new Map<string, { readonly paths: readonly string[]; readonly timer: NodeJS.Timeout }>();
  /** By path of an output stream, then by key. A stream that may have unknown outputs is found by application, too. */
  readonly #left = new Map<string, Map<string, LeftStream>>();

  /** @param onOver called for a stream that gets no other owner in time */
  constructor(cluster: Pick<Cluster, 'nodes'>, onOver: (name: StreamName) => void) {
    this.#cluster = cluster;
    this.#onOver = onOver;
  }

  /** Adds a stream that its owner no longer has, for whatever reason: the death of its node may become known later. */
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

  /** Whether a stream that had, or may have been about to have, an output stream, and is accepted by `concerns`, may move. */
  has(vhost: string, app: string, output: string, concerns: (stream: LeftStream) => boolean): boolean {
    for (const path of [joinKey(vhost, app, output), joinKey(vhost, app)]) {
      for (const stream of this.#left.get(path)?.values() ?? [])
        if (concerns(stream) && this.isLeaving(stream.owner)) return true;
    }
    return false;
  }

  /** Whether a node has died, left or is draining: its streams may soon have other owners. */
  isLeaving({ id, incarnation }: NodeIdentity): boolean {
    const row = this.#cluster.nodes().find((node) => node.id === id);
    return row?.incarnation !== incarnation || row.state !== 'ready' || row.silentMs >= SILENT_MS;
  }

  close(): void {
    for (const key of [...this.#places.keys()]) this.delete(key);
  }
}

/** Paths of a stream: by application, too, if it is starting or being closed, since it may have further outputs. */
function pathsOf({ name: { vhost, app }, meta: { live, outputs, starting } }: LeftStream): string[] {
  const paths = outputs.map((output) => joinKey(vhost, app, output));
  return live && starting === false ? paths : [...paths, joinKey(vhost, app)];
}

import type { Duplex } from 'node:stream';
import type { Cluster, NodeIdentity, PeerHandler, PeerRequest, PeerResponse, PeerStreamHandler } from '#cluster';

const UNKNOWN: PeerResponse = { status: 404, headers: {}, body: Buffer.alloc(0) };

/** What other nodes may call this one for, by the beginning of the path. */
export class PeerCalls {
  readonly #calls = new Map<string, PeerHandler>();
  readonly #streams = new Map<string, PeerStreamHandler>();

  constructor(cluster: Pick<Cluster, 'serve'>) {
    cluster.serve((request, from) => this.#answer(request, from), (stream, path, from) => this.#take(stream, path, from));
  }

  /** @param prefix such as `/api/`, which the handler finds in the path, too */
  add(prefix: string, handler: PeerHandler): void {
    this.#calls.set(prefix, handler);
  }

  /** The same for streams of bytes. */
  addStreams(prefix: string, handler: PeerStreamHandler): void {
    this.#streams.set(prefix, handler);
  }

  async #answer(request: PeerRequest, from: NodeIdentity): Promise<PeerResponse> {
    return (await find(this.#calls, request.path)?.(request, from)) ?? UNKNOWN;
  }

  #take(stream: Duplex, path: string, from: NodeIdentity): void {
    const handler = find(this.#streams, path);
    if (handler === undefined) stream.destroy();
    else handler(stream, path, from);
  }
}

function find<T>(handlers: ReadonlyMap<string, T>, path: string): T | undefined {
  for (const [prefix, handler] of handlers) if (path.startsWith(prefix)) return handler;
  return undefined;
}

import type { Duplex } from 'node:stream';
import type { Cluster, NodeIdentity, PeerHandler, PeerRequest, PeerResponse, PeerStreamHandler } from '#cluster';
import { FaultLog, type Logger } from '../log.ts';

const UNKNOWN: PeerResponse = { status: 404, headers: {}, body: Buffer.alloc(0) };

/** What other nodes may call this one for, by the beginning of the path. */
export class PeerCalls {
  readonly #calls = new Map<string, PeerHandler>();
  readonly #streams = new Map<string, PeerStreamHandler>();
  readonly #faults: FaultLog;

  constructor(cluster: Pick<Cluster, 'serve'>, log: Logger) {
    this.#faults = new FaultLog(log);
    cluster.serve(
      (request, from) => this.#answer(request, from),
      (stream, path, from) => this.#take(stream, path, from),
    );
  }

  /** @param prefix such as `/api/`, which the handler finds in the path, too */
  add(prefix: string, handler: PeerHandler): void {
    this.#calls.set(prefix, handler);
  }

  /** The same for streams of bytes. */
  addStreams(prefix: string, handler: PeerStreamHandler): void {
    this.#streams.set(prefix, handler);
  }

  /** Idempotent. */
  close(): void {
    this.#faults.close();
  }

  /** @throws what the handler does, which is told here: who called learns only that there is no answer */
  async #answer(request: PeerRequest, from: NodeIdentity): Promise<PeerResponse> {
    const found = find(this.#calls, request.path);
    if (found === undefined) return UNKNOWN;
    try {
      return await found.handler(request, from);
    } catch (error) {
      this.#tell('call', found.prefix, error as Error);
      throw error;
    }
  }

  #take(stream: Duplex, path: string, from: NodeIdentity): void {
    const found = find(this.#streams, path);
    if (found === undefined) return void stream.destroy();
    try {
      found.handler(stream, path, from);
    } catch (error) {
      this.#tell('stream', found.prefix, error as Error);
      stream.destroy();
    }
  }

  #tell(what: string, prefix: string, error: Error): void {
    // what it says and where it comes from: who called, below that, makes no other fault of it
    const told = (error.stack ?? error.message).split('\n', 2).join('');
    this.#faults.count(`a ${what} ${prefix} of another node failed: ${told}`);
  }
}

function find<T>(
  handlers: ReadonlyMap<string, T>,
  path: string,
): { readonly prefix: string; readonly handler: T } | undefined {
  for (const [prefix, handler] of handlers) if (path.startsWith(prefix)) return { prefix, handler };
  return undefined;
}

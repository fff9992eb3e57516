import { srtOptions } from '../../lib/srt-options.ts';
import type { Logger } from '../../log/log.ts';
import type { SrtConnection } from './connection.ts';
import { listenPlaces, SrtListener, type SrtCaller, type SrtListenOptions } from './listener.ts';
import { SrtRuntime } from './runtime.ts';
import { readStreamId, type StreamId } from './stream-id.ts';

/** Ports of Server.xml, the default stream of each for callers that name none, and socket options. */
interface SrtBind {
  readonly port?: readonly { readonly first: number; readonly last: number }[] | undefined;
  readonly streamMap: readonly { readonly port: number; readonly streamPath: string }[];
  readonly options: readonly { readonly key: string; readonly value: string }[];
}

export interface SrtPortsOptions {
  /** Addresses as Server.xml has them. */
  readonly ip: readonly string[];
  readonly bind: SrtBind;
  readonly log: Logger;
  readonly clientAt?: SrtListenOptions['clientAt'];
  /** See SrtListenOptions; the id is undefined when the stream id cannot be read. */
  readonly refuse: (id: StreamId | undefined, caller: SrtCaller) => number | undefined;
  readonly connection: (connection: SrtConnection, id: StreamId) => void;
}

/** The ports of a provider or publisher, each on every address of the server. */
export class SrtPorts {
  readonly #runtime: SrtRuntime;
  readonly #listeners: SrtListener[] = [];
  #closed: Promise<void> | undefined;

  /** @throws SrtMissingError when there is no libsrt, SrtError when a port cannot be listened on */
  static async open(options: SrtPortsOptions): Promise<SrtPorts> {
    const ports = new SrtPorts(SrtRuntime.open(options.log));
    try {
      ports.#listen(options);
    } catch (error) {
      await ports.close();
      throw error;
    }
    return ports;
  }

  private constructor(runtime: SrtRuntime) {
    this.#runtime = runtime;
  }

  /** Admits no more callers. Idempotent. */
  async closeListeners(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }

  /** Ends libsrt. The caller has closed every connection by then. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.closeListeners().then(() => this.#runtime.close());
    return this.#closed;
  }

  #listen({ ip, bind, log, clientAt, refuse, connection }: SrtPortsOptions): void {
    const mapped = new Map(bind.streamMap.map(({ port, streamPath }) => [port, streamPath]));
    const options = srtOptions(bind.options);
    for (const port of eachPort(bind.port)) {
      const read = (streamId: string): StreamId | undefined => readStreamId(streamId, mapped.get(port));
      for (const place of listenPlaces(ip)) {
        this.#listeners.push(
          new SrtListener(this.#runtime, {
            ...place,
            port,
            options,
            log,
            clientAt,
            refuse: (caller) => refuse(read(caller.streamId), caller),
            connection: (taken) => {
              const id = read(taken.streamId);
              if (id === undefined) taken.close();
              else connection(taken, id);
            },
          }),
        );
      }
    }
  }
}

/** Ports of some ranges, each once. */
export function eachPort(ranges: SrtBind['port'] = []): number[] {
  const ports = ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
  return [...new Set(ports)];
}

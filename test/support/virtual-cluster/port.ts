import { PassThrough, type Duplex } from 'node:stream';
import { OutcomeUnknownError, UnreachableError } from '../../../cluster/errors.ts';
import type * as real from '../../../cluster/peer/port.ts';
import { isRefusal } from '../../../cluster/peer/refusal.ts';
import { afterRunning } from '../../../cluster/running-time.ts';
import type { NodeIdentity, PeerHandler, PeerRequest, PeerResponse } from '../../../cluster/types.ts';
import type { Socket } from './net.ts';
import { here, type Process } from './scheduler.ts';
import { World, type PeerEntry } from './world.ts';

type Options = ConstructorParameters<typeof real.PeerPort>[0];

/** What a connection or a call comes to at the other end. */
type Outcome<T> = { readonly value: T } | 'another';

const CODES = { refused: 'ECONNREFUSED', unreachable: 'EHOSTUNREACH', closed: 'ECONNRESET' } as const;

/** Stands in for `cluster/peer/port.ts`: connections are those of the world, and nothing is signed. */
export class PeerPort implements Pick<
  real.PeerPort,
  'listen' | 'serveStreams' | 'call' | 'connect' | 'hold' | 'close'
> {
  readonly #options: Options;
  readonly #world = World.here;
  readonly #process = here();

  constructor(options: Options) {
    this.#options = options;
  }

  listen(handler: PeerHandler): Promise<string> {
    const { peers, net } = this.#world;
    peers.set(this.#process, { self: this.#options.self, handler });
    net.listen(this.#process, () => {});
    return Promise.resolve(`http://${this.#process.name}:1`);
  }

  serveStreams(): void {}

  async call(to: NodeIdentity, request: PeerRequest, timeoutMs: number): Promise<PeerResponse> {
    const answer = async ({ handler }: PeerEntry): Promise<PeerResponse> => await handler(request, this.#options.self);
    const { value, socket } = await this.#reach(to, answer, timeoutMs);
    socket.end(this.#process);
    return value;
  }

  connect(): Promise<Duplex> {
    return Promise.reject(new UnreachableError('there are no streams'));
  }

  async hold(to: NodeIdentity, timeoutMs: number): Promise<Duplex> {
    const stream = new PassThrough();
    const held = (): Promise<boolean> => Promise.resolve(true);
    const { socket } = await this.#reach(to, held, timeoutMs, () => stream.destroy()).catch((error: Error) => {
      throw error instanceof OutcomeUnknownError ? new UnreachableError(error.message, { cause: error.cause }) : error;
    });
    stream.once('close', () => socket.end(this.#process));
    return stream;
  }

  close(): Promise<void> {
    this.#world.peers.delete(this.#process);
    return Promise.resolve();
  }

  async #reach<T>(
    to: NodeIdentity,
    ask: (peer: PeerEntry) => Promise<T>,
    timeoutMs: number,
    onEnd = (): void => {},
  ): Promise<{ readonly value: T; readonly socket: Socket }> {
    const { onReached, onRefused, addressOf } = this.#options;
    const address = addressOf(to.id);
    if (address === undefined) throw new UnreachableError(`node ${to.id} has no known address`);
    try {
      const reached = await this.#open(to, new URL(address).hostname, ask, timeoutMs, onEnd);
      onReached(to);
      return reached;
    } catch (error) {
      if (isRefusal(error as Error)) onRefused(to);
      throw error;
    }
  }

  #open<T>(
    to: NodeIdentity,
    host: string,
    ask: (peer: PeerEntry) => Promise<T>,
    timeoutMs: number,
    onEnd: () => void,
  ): Promise<{ readonly value: T; readonly socket: Socket }> {
    return new Promise((resolve, reject) => {
      let isOpen = false;
      const fail = (text: string, code?: string): void => {
        inTime();
        const cause = code === undefined ? undefined : Object.assign(new Error(text), { code });
        const message = `node ${to.id}: ${text}`;
        reject(isOpen ? new OutcomeUnknownError(message, { cause }) : new UnreachableError(message, { cause }));
      };
      const socket: Socket = this.#world.net.connect(this.#process, host, {
        onOpen: () => {
          isOpen = true;
          socket.send(() => {
            const answer = (outcome: Outcome<T>): void =>
              socket.answer(() => {
                inTime();
                if (outcome !== 'another') return resolve({ value: outcome.value, socket });
                socket.end(this.#process);
                reject(new UnreachableError(`node ${to.id}: the call was refused`));
              });
            const peer = this.#peer(here(), to);
            if (peer === undefined) answer('another');
            else void ask(peer).then((value) => answer({ value }));
          });
        },
        onClose: (reason) => {
          fail(reason, CODES[reason]);
          onEnd();
        },
      });
      const inTime = afterRunning(timeoutMs, () => {
        socket.end(this.#process);
        fail('no answer in time');
      });
    });
  }

  /** Whoever is asked is the process at the address: it may have another node than the one that is meant. */
  #peer(process: Process, { id, incarnation }: NodeIdentity): PeerEntry | undefined {
    const peer = this.#world.peers.get(process);
    const isMeant = peer?.self.id === id && (incarnation === '' || peer.self.incarnation === incarnation);
    return isMeant ? peer : undefined;
  }
}

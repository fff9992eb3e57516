import type { Duplex } from 'node:stream';
import type { Static, TSchema } from 'typebox';
import {
  OutcomeUnknownError,
  UnreachableError,
  type Cluster,
  type NodeIdentity,
  type PeerHandler,
  type PeerRequest,
  type PeerResponse,
  type PeerStreamHandler,
} from '#cluster';
import { Histogram } from '../lib/histogram.ts';
import { KilnError, kilnError } from '../errors.ts';
import { FaultLog, type Logger } from '../log/log.ts';
import {
  decodeAnswer,
  decodeRequest,
  encodeAnswer,
  encodeError,
  encodeRequest,
  MalformedAnswerError,
  pathOf,
  unknownCall,
  type PeerCall,
  type WithBytes,
} from './peer-call.ts';

/** Answers a call. A KilnError that it throws is thrown at the caller. */
type CallHandler<Q extends TSchema, T> = (request: Static<Q>, from: NodeIdentity) => T | Promise<T>;

/** Results of this node's calls of one name. */
export interface PeerCallCounts {
  readonly seconds: Histogram;
  /** Calls without a valid answer. */
  failed: number;
}

/** Calls between nodes: answers those of other nodes, and makes those of this one. */
export class PeerCalls {
  readonly #cluster: Pick<Cluster, 'serve' | 'forward'>;
  readonly #calls = new Map<string, PeerHandler>();
  readonly #streams = new Map<string, PeerStreamHandler>();
  readonly #faults: FaultLog;
  readonly #counts = new Map<string, PeerCallCounts>();

  constructor(cluster: Pick<Cluster, 'serve' | 'forward'>, log: Logger) {
    this.#cluster = cluster;
    this.#faults = new FaultLog(log);
    cluster.serve(
      (request, from) => this.#take(request, from),
      (stream, path, from) => this.#takeStream(stream, path, from),
    );
  }

  get counts(): ReadonlyMap<string, PeerCallCounts> {
    return this.#counts;
  }

  answer<Q extends TSchema, A extends TSchema>(call: PeerCall<Q, A>, handler: CallHandler<Q, Static<A>>): void {
    this.#serve(call, async (request, from) => encodeAnswer(await handler(request, from)));
  }

  /** Sets the handler of a call whose answer has bytes. */
  answerBytes<Q extends TSchema, A extends TSchema>(
    call: PeerCall<Q, A>,
    handler: CallHandler<Q, WithBytes<Static<A>>>,
  ): void {
    this.#serve(call, async (request, from) => {
      const { answer, bytes } = await handler(request, from);
      return encodeAnswer(answer, bytes);
    });
  }

  /**
   * Sets the handler for byte streams, which have no `PeerCall`.
   * @param prefix such as `/relay/`, which is also part of the handler's path
   */
  addStreams(prefix: string, handler: PeerStreamHandler): void {
    this.#streams.set(prefix, handler);
  }

  /**
   * Calls another node.
   * @throws the KilnError of that node; ownerUnreachable when the call never arrived, callUnknown when that node is of
   * another version, ownerSilent when it is not known whether the call was executed; `cause` has the reason
   */
  async call<Q extends TSchema, A extends TSchema>(
    node: NodeIdentity,
    call: PeerCall<Q, A>,
    request: Static<Q>,
    timeoutMs: number,
  ): Promise<Static<A>> {
    return (await this.callForBytes(node, call, request, timeoutMs)).answer;
  }

  /** As `call`, for an answer with bytes. */
  async callForBytes<Q extends TSchema, A extends TSchema>(
    node: NodeIdentity,
    call: PeerCall<Q, A>,
    request: Static<Q>,
    timeoutMs: number,
  ): Promise<WithBytes<Static<A>>> {
    const counts = this.#countsOf(call.name);
    const since = performance.now();
    try {
      return decodeAnswer(call, await this.#cluster.forward(node, encodeRequest(call, request), timeoutMs));
    } catch (cause) {
      if (!(cause instanceof KilnError)) counts.failed++;
      if (cause instanceof UnreachableError) throw Object.assign(kilnError('ownerUnreachable'), { cause });
      if (cause instanceof MalformedAnswerError) this.#faults.count(`node ${node.id}: ${cause.message}`);
      else if (!(cause instanceof OutcomeUnknownError)) throw cause;
      throw Object.assign(kilnError('ownerSilent'), { cause });
    } finally {
      counts.seconds.add((performance.now() - since) / 1000);
    }
  }

  #countsOf(name: string): PeerCallCounts {
    const counts = this.#counts.get(name) ?? { seconds: new Histogram(), failed: 0 };
    this.#counts.set(name, counts);
    return counts;
  }

  close(): void {
    this.#faults.close();
  }

  #serve<Q extends TSchema>(
    call: PeerCall<Q>,
    answer: (request: Static<Q>, from: NodeIdentity) => Promise<PeerResponse>,
  ): void {
    this.#calls.set(pathOf(call), async (request, from) => {
      try {
        return await answer(decodeRequest(call, request), from);
      } catch (error) {
        if (!(error instanceof KilnError)) throw error;
        if (error.code === 'callMalformed') this.#faults.count(`node ${from.id}: ${error.message}`);
        return encodeError(error);
      }
    });
  }

  /** @throws errors of the handler, which are logged here: the caller learns only that there is no answer */
  async #take(request: PeerRequest, from: NodeIdentity): Promise<PeerResponse> {
    const { path } = request;
    const call = this.#calls.get(path);
    if (call === undefined) return unknownCall();
    try {
      return await call(request, from);
    } catch (error) {
      this.#logFault('call', path, error as Error);
      throw error;
    }
  }

  #takeStream(stream: Duplex, path: string, from: NodeIdentity): void {
    const found = [...this.#streams].find(([prefix]) => path.startsWith(prefix));
    if (found === undefined) return void stream.destroy();
    const [prefix, handler] = found;
    try {
      handler(stream, path, from);
    } catch (error) {
      this.#logFault('stream', prefix, error as Error);
      stream.destroy();
    }
  }

  #logFault(what: string, prefix: string, error: Error): void {
    // by message and origin: a different rest of the stack makes no different fault
    const origin = (error.stack ?? error.message).split('\n', 2).join('');
    this.#faults.count(`a ${what} ${prefix} of another node failed: ${origin}`);
  }
}

import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { Agent as TlsAgent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Rejections } from '../rejections.ts';
import { UnreachableError } from '../errors.ts';
import { afterRunning } from '../running-time.ts';
import type { NodeIdentity, PeerHandler, PeerRequest, PeerResponse, PeerStreamHandler } from '../types.ts';
import { ClockError, NodeClocks } from './call-clock.ts';
import { checkNode } from './certificate.ts';
import { exchange, type SecureOptions, type Way } from './exchange.ts';
import { bodyHash, type Secrets } from './mac.ts';
import { isRefusal } from './refusal.ts';
import { PeerServer } from './server.ts';
import { HELD, openStream, STREAM } from './stream.ts';
import type { Call } from './wire.ts';

/** Simultaneous calls to one node; further ones wait. Many, since some last until the requested media exists. */
const LIMITS = { keepAlive: true, maxSockets: 2048 };

/** PEM, as node:tls takes them. */
export interface PeerTls {
  readonly cert: string;
  readonly key: string;
  /**
   * Authority of the nodes' certificates, if it is not a public one. Then both ends of a connection show theirs, which has to
   * name the node (`namesNode`).
   */
  readonly ca?: string;
}

/** Where the port is, and how it is secured. */
export interface PeerPortOptions {
  /** Address to bind to, and port; 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** Name or address by which other nodes reach it; `host` when undefined. */
  readonly advertise?: string;
  readonly secrets: Secrets;
  readonly tls?: PeerTls;
}

interface Context {
  readonly self: NodeIdentity;
  /** The cluster's time, for calls to nodes whose own time is unknown. */
  readonly now: () => number;
  readonly addressOf: (id: string) => string | undefined;
  readonly rejections: Rejections;
  /** Called when a node has authenticated itself, and when its port has refused a connection. */
  readonly onReached: (node: NodeIdentity) => void;
  readonly onRefused: (node: NodeIdentity) => void;
  readonly onFault: (error: Error) => void;
}

/** Connections are kept for the node that they were made to: another one at the same address shows its own certificate. */
class NodeAgent extends TlsAgent {
  override getName(options?: RequestOptions & { readonly node?: string }): string {
    return `${super.getName(options)}:${options?.node ?? ''}`;
  }
}

/** The cluster port, on which only nodes call each other. */
export class PeerPort {
  readonly #options: PeerPortOptions & Context;
  /** By scheme: during a change of the configuration some nodes have TLS and others do not. */
  readonly #agents = { http: new Agent(LIMITS), https: new NodeAgent(LIMITS) };
  readonly #clocks = new NodeClocks();
  readonly #context: SecureContext | undefined;
  #server: PeerServer | undefined;

  constructor(options: PeerPortOptions & Context) {
    this.#options = options;
    this.#context = options.tls && createSecureContext(options.tls);
  }

  /** @returns the address for other nodes */
  async listen(handler: PeerHandler): Promise<string> {
    const { host, port, advertise = host, tls } = this.#options;
    this.#server = new PeerServer({ ...this.#options, tls, handler });
    const bound = await this.#server.listen(host, port);
    return `${tls === undefined ? 'http' : 'https'}://${advertise.includes(':') ? `[${advertise}]` : advertise}:${bound}`;
  }

  /** Sets the handler for streams that other nodes open; undefined rejects them. */
  serveStreams(handler: PeerStreamHandler | undefined): void {
    this.#server?.serveStreams(handler);
  }

  /**
   * @param options.once on a connection of its own, which cannot have died unnoticed, and without another attempt when the node
   *   refuses the call for its time
   * @throws UnreachableError, OutcomeUnknownError
   */
  async call(to: NodeIdentity, request: PeerRequest, timeoutMs: number, { once = false } = {}): Promise<PeerResponse> {
    const attempt = async (way: Way, call: Call): Promise<PeerResponse> =>
      await exchange(once ? { ...way, agent: undefined } : way, call, request.body);
    return await this.#make(to, request, timeoutMs, attempt, once);
  }

  /** @throws UnreachableError */
  async connect(to: NodeIdentity, path: string, timeoutMs: number): Promise<Duplex> {
    return await this.#make(to, { method: STREAM, path, headers: {}, body: Buffer.alloc(0) }, timeoutMs, openStream);
  }

  /** Opens a connection that carries nothing and ends with the process of the node. @throws UnreachableError */
  async hold(to: NodeIdentity, timeoutMs: number): Promise<Duplex> {
    return await this.connect(to, HELD, timeoutMs);
  }

  /** Makes a call, and repeats it once with the node's time if the node has rejected it for its time. */
  async #make<T>(
    to: NodeIdentity,
    request: PeerRequest,
    timeoutMs: number,
    attempt: (way: Way, call: Call) => Promise<T>,
    once = false,
  ): Promise<T> {
    const { onReached, onRefused } = this.#options;
    const late = new AbortController();
    const inTime = afterRunning(timeoutMs, () => late.abort());
    try {
      const way = this.#way(to, late.signal);
      const result = await attempt(way, this.#sealable(to, request)).catch((error: unknown) => {
        const isNews = error instanceof ClockError && this.#clocks.learn(to, error.time);
        if (!isNews || once) throw error;
        return attempt(way, this.#sealable(to, request));
      });
      onReached(to);
      return result;
    } catch (error) {
      if (isRefusal(error as Error)) onRefused(to);
      throw error;
    } finally {
      inTime();
    }
  }

  #way(to: NodeIdentity, signal: AbortSignal): Way {
    const { secrets, addressOf } = this.#options;
    const address = addressOf(to.id);
    if (address === undefined) throw new UnreachableError(`node ${to.id} has no known address`);
    const agent = address.startsWith('https:') ? this.#agents.https : this.#agents.http;
    return { address, agent, secure: this.#secure(to.id), secrets, signal };
  }

  #secure(node: string): SecureOptions | undefined {
    const { tls, rejections } = this.#options;
    if (this.#context === undefined) return undefined;
    if (tls?.ca === undefined) return { secureContext: this.#context };
    const checkServerIdentity: SecureOptions['checkServerIdentity'] = (host, certificate) => {
      const wrong = checkNode(host, certificate, node);
      if (wrong === undefined) rejections.trust('certificates', node);
      else rejections.refuse('certificates', node, wrong.message);
      return wrong;
    };
    return { secureContext: this.#context, node, checkServerIdentity };
  }

  #sealable(to: NodeIdentity, { method, path, headers, body }: PeerRequest): Call {
    const { self, now } = this.#options;
    const nonce = randomBytes(16).toString('base64url');
    return {
      from: self,
      to: { id: to.id, incarnation: to.incarnation },
      method,
      path,
      headers,
      nonce,
      time: Math.round(this.#clocks.timeOf(to) ?? now()),
      bodyHash: bodyHash(body),
    };
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const agent of Object.values(this.#agents)) agent.destroy();
    await this.#server?.close();
  }
}

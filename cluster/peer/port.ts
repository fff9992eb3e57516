import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { UnreachableError } from '../errors.ts';
import type { NodeIdentity, NodeRow, PeerHandler, PeerRequest, PeerResponse } from '../types.ts';
import { exchange } from './exchange.ts';
import { bodyHash } from './mac.ts';
import { PeerServer } from './server.ts';
import type { Call } from './wire.ts';

/** Calls to one node at a time; further ones wait. */
const MAX_SOCKETS = 64;

/** PEM, as node:tls takes them. */
export interface PeerTls {
  readonly cert: string;
  readonly key: string;
  /** Who signs the nodes' certificates, when it is none of the known authorities. */
  readonly ca?: string;
}

export interface PeerPortOptions {
  /** Address to bind to, and port; 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** Name or address by which other nodes reach it; `host` when undefined. */
  readonly advertise?: string;
  /** What all nodes of the cluster know and nobody else. */
  readonly secret: string;
  readonly tls?: PeerTls;
}

interface Context {
  readonly self: NodeIdentity;
  /** The cluster's clock. */
  readonly now: () => number;
  readonly rows: () => readonly NodeRow[];
}

/** The cluster port: nodes call each other there, and nobody else. */
export class PeerPort {
  readonly #options: PeerPortOptions & Context;
  readonly #agent: Agent;
  #server: PeerServer | undefined;

  constructor(options: PeerPortOptions & Context) {
    this.#options = options;
    const limits = { keepAlive: true, maxSockets: MAX_SOCKETS };
    this.#agent = options.tls === undefined ? new Agent(limits) : new TlsAgent(limits);
  }

  /** @returns the address that others are told */
  async listen(handler: PeerHandler): Promise<string> {
    const { host, port, advertise = host, tls } = this.#options;
    this.#server = new PeerServer({ ...this.#options, tls, handler });
    const bound = await this.#server.listen(host, port);
    return `${tls === undefined ? 'http' : 'https'}://${advertise.includes(':') ? `[${advertise}]` : advertise}:${bound}`;
  }

  /** @throws UnreachableError, OutcomeUnknownError */
  async call(to: NodeIdentity, { method, path, headers, body }: PeerRequest, timeoutMs: number): Promise<PeerResponse> {
    const { self, secret, tls, now, rows } = this.#options;
    const row = rows().find(({ id }) => id === to.id);
    if (row?.address === undefined) throw new UnreachableError(`there is no node ${to.id} that could be called`);
    const nonce = randomBytes(16).toString('base64url');
    const { id, incarnation } = to;
    const call: Call = {
      from: self, to: { id, incarnation }, method, path, headers, nonce, time: Math.round(now()), bodyHash: bodyHash(body),
    };
    return await exchange({ address: row.address, agent: this.#agent, ca: tls?.ca, secret, timeoutMs }, call, body);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#agent.destroy();
    await this.#server?.close();
  }
}

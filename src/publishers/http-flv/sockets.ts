import type { IncomingMessage, Server } from 'node:http';
import type { BlockList } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { challengeHeaders } from '../../access/challenge.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { MAX_WEB_SOCKETS, refuseUpgrade, WebSockets } from '../../lib/web-sockets.ts';
import type { Logger } from '../../log/log.ts';
import { hasDirection, type PeerRequest } from '../../webrtc/signalling/request.ts';
import { peerRequest } from '../../webrtc/signalling/upgrades.ts';
import type { MediaLink } from './link.ts';

export interface MediaSocketsOptions {
  /** Networks whose `X-Forwarded-For` is trusted. */
  readonly proxies: BlockList | undefined;
  readonly log: Logger;
  /** Whether a request is for media, by its names. */
  readonly isMedia: (peer: PeerRequest) => boolean;
  /**
   * Admits a viewer.
   * @returns what opens it on its connection, or ends it before it has one
   * @throws KilnError
   */
  readonly admit: (peer: PeerRequest) => Promise<AdmittedPeer>;
}

export interface AdmittedPeer {
  /** @returns to be called when the viewer has left @throws KilnError */
  open(link: MediaLink): (reason: string) => void;
  end(reason: string): void;
}

/** Players send nothing but answers to pings. */
const MAX_MESSAGE = 1024;
const NORMAL_CLOSURE = 1000;
const INTERNAL_ERROR = 500;
/** Bytes of a reason in a close frame (RFC 6455 section 5.5). */
const MAX_REASON = 100;

/** WebSockets by which media is played, beside those of WebRTC's signalling. */
export class MediaSockets {
  readonly #options: MediaSocketsOptions;
  readonly #sockets = new WebSockets(MAX_MESSAGE);
  #waiting = 0;

  constructor(options: MediaSocketsOptions) {
    this.#options = options;
  }

  /** Whether an upgrade is for media: one with a direction, or to a stream of that very name, is for signalling. */
  readonly takes = (request: IncomingMessage): boolean => this.#read(request) !== undefined;

  /** Handles the upgrades of an HTTP server that are for media, and refuses others where nothing else handles them. */
  attach(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const peer = this.#read(request);
      if (peer !== undefined) void this.#upgrade(peer, request, socket, head);
      else if (server.listenerCount('upgrade') === 1) refuse(socket, kilnError('fileNotFound'));
    });
  }

  /** Idempotent. */
  close(): void {
    this.#sockets.close();
  }

  #read(request: IncomingMessage): PeerRequest | undefined {
    const peer = peerRequest(request, this.#options.proxies);
    return peer === undefined || hasDirection(peer.query) || !this.#options.isMedia(peer) ? undefined : peer;
  }

  async #upgrade(peer: PeerRequest, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const gone = new AbortController();
    socket.on('error', () => socket.destroy()).once('close', () => gone.abort());
    if (this.#sockets.size + this.#waiting >= MAX_WEB_SOCKETS)
      return refuse(socket, kilnError('tooManyConnections', MAX_WEB_SOCKETS));
    this.#waiting++;
    try {
      const admitted = await this.#options.admit({ ...peer, signal: gone.signal });
      let isOpen = false;
      if (!socket.destroyed)
        this.#sockets.accept(request, socket, head, (webSocket) => {
          isOpen = true;
          this.#open(webSocket, socket, admitted);
        });
      if (!isOpen) admitted.end('the handshake failed');
    } catch (error) {
      if (!(error instanceof KilnError)) this.#options.log.error({ err: error }, 'a viewer request failed');
      refuse(socket, error as Error);
    } finally {
      this.#waiting--;
    }
  }

  #open(webSocket: WebSocket, socket: Duplex, admitted: AdmittedPeer): void {
    const link: MediaLink = {
      framing: 'message',
      get unsent() {
        return socket.writableLength;
      },
      begin: (writable) => void socket.on('drain', writable),
      // whole frames, as those that the WebSocket writes itself
      send: (data) => {
        if (webSocket.readyState === webSocket.OPEN) socket.write(data);
      },
      end: (reason) => webSocket.close(NORMAL_CLOSURE, reason.slice(0, MAX_REASON)),
      destroy: () => webSocket.terminate(),
    };
    webSocket.on('error', () => webSocket.terminate());
    try {
      const left = admitted.open(link);
      webSocket.once('close', () => left('the viewer left'));
    } catch (error) {
      link.end((error as Error).message);
    }
  }
}

function refuse(socket: Duplex, error: Error): void {
  refuseUpgrade(socket, error instanceof KilnError ? error.status : INTERNAL_ERROR, challengeHeaders(error));
}

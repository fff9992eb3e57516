import type { Socket } from 'node:net';
import type { Logger } from '../../log/log.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { limitUnacknowledged } from '../../protocols/unacknowledged.ts';
import { Dialogue } from './dialogue.ts';
import { PartialShare } from './partial-share.ts';
import type { ClientConnection, PublisherContext } from './publisher.ts';

const HANDSHAKE_TIMEOUT_MS = 10_000;
const PUBLISH_TIMEOUT_MS = 20_000;
/** After the last answer, how long the client may take to read it and hang up. */
const LINGER_MS = 1000;
const KEEP_ALIVE_MS = 15_000;
/** After so long without a byte either way, the client may have vanished. */
const SILENT_MS = 15_000;
/** And is taken for vanished when it has acknowledged nothing for so long of what was sent to it. */
const UNACKNOWLEDGED_MS = 30_000;
const MAX_BYTES_BEFORE_PUBLISH = 256 * 1024;
const MAX_UNREAD_ANSWER_BYTES = 256 * 1024;
/** Held of what a client sends while it is being found out whether it may publish: no more is read then. */
const MAX_HELD_BYTES = 64 * 1024;

export interface SessionContext extends PublisherContext {
  readonly log: Logger;
  /** What all sessions of the server hold of messages that are not complete yet. */
  readonly partial: { bytes: number };
  readonly onClose: () => void;
}

/** One RTMP client from its first byte to its last. Closing is idempotent and its reason is logged once. */
export class RtmpSession {
  readonly #socket: Socket;
  readonly #dialogue: Dialogue;
  readonly #share: PartialShare;
  readonly #onClose: () => void;
  /** What comes meanwhile, where something is to be found out before it counts: it is read for its end to be noticed. */
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  /** Bytes that had come when publishing last ended. */
  #bytesAtIdle = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  #lingerTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(socket: Socket, peer: Peer, context: SessionContext) {
    this.#socket = socket;
    this.#share = new PartialShare(context.partial);
    this.#onClose = context.onClose;
    const log = context.log.child({ remote: `${peer.remoteAddress}:${peer.remotePort}` });
    const connection: ClientConnection = {
      write: (pieces) => this.#write(pieces),
      hold: () => this.#hold(),
      release: () => this.#release(),
      idle: () => this.#idle(),
      guard: (step) => this.#guard(step),
      close: (reason, level) => this.close(reason, level),
    };
    this.#dialogue = new Dialogue({ peer, context, connection, log });
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.setTimeout(SILENT_MS, () => this.#silent());
    socket.on('data', (data) => this.#receive(data));
    socket.on('error', (error) => this.close(`connection lost: ${error.message}`));
    socket.on('end', () => this.close('the client closed the connection'));
    socket.on('close', () => this.#gone());
    this.#giveTime(HANDSHAKE_TIMEOUT_MS);
  }

  /**
   * Ends the session: its stream is closed, what was to be answered is still sent, then the socket.
   * @param level how the reason is logged: `info` becomes `debug` where the end of the stream tells as much
   */
  close(reason: string, level: 'debug' | 'info' | 'warn' | 'error' = 'info'): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#idleTimer);
    this.#held = undefined;
    this.#share.release();
    const { log, wire, hasPublished } = this.#dialogue;
    log[level === 'info' && hasPublished ? 'debug' : level](
      { received: wire.received },
      `RTMP session closed: ${reason}`,
    );
    this.#dialogue.end(reason);
    this.#socket.end();
    this.#lingerTimer = setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  /** @see RtmpPublisher.setHandsOver */
  setHandsOver(handsOver: boolean): boolean {
    return !this.#closed && this.#dialogue.setHandsOver(handsOver);
  }

  /** Asks the client, which goes on until it has done so, to reconnect. */
  askToReconnect(): void {
    this.#dialogue.askToReconnect();
  }

  #gone(): void {
    this.close('the connection was lost');
    clearTimeout(this.#lingerTimer);
    this.#onClose();
  }

  /** Keep-alive finds a client that has vanished, but not while something that was sent to it is unacknowledged. */
  #silent(): void {
    this.#socket.setTimeout(0);
    limitUnacknowledged(this.#socket, UNACKNOWLEDGED_MS).catch((err: Error) =>
      this.#dialogue.log.debug({ err }, 'a client that vanishes will be noticed late'),
    );
  }

  #receive(data: Buffer): void {
    if (this.#closed) return;
    if (this.#held !== undefined) return this.#keep(this.#held, data);
    this.#guard(() => {
      const { wire } = this.#dialogue;
      const shaken = wire.shookHands;
      this.#dialogue.receive(data);
      this.#share.hold(wire.partialBytes);
      if (!this.#dialogue.isIdle) return;
      if (!shaken && wire.shookHands) this.#giveTime(PUBLISH_TIMEOUT_MS);
      if (wire.received - this.#bytesAtIdle > MAX_BYTES_BEFORE_PUBLISH) {
        throw new RtmpError(`more than ${MAX_BYTES_BEFORE_PUBLISH} bytes without publishing`);
      }
    });
  }

  /** What goes wrong with a client costs it the session. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof RtmpError) return this.close(error.message, 'warn');
      this.#dialogue.log.error({ err: error }, 'the RTMP session failed');
      this.close('internal error', 'error');
    }
  }

  #write(pieces: readonly Buffer[]): void {
    if (this.#closed || this.#socket.destroyed) return;
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
    if (this.#socket.writableLength > MAX_UNREAD_ANSWER_BYTES)
      this.close('the client does not read the answers', 'warn');
  }

  #hold(): void {
    this.#held ??= [];
    clearTimeout(this.#idleTimer);
  }

  #keep(held: Buffer[], data: Buffer): void {
    held.push(data);
    this.#heldBytes += data.length;
    if (this.#heldBytes >= MAX_HELD_BYTES) this.#socket.pause();
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#heldBytes = 0;
    // one of them may have to be found out about again, after which the rest waits
    for (const data of held) this.#receive(data);
    if (this.#heldBytes < MAX_HELD_BYTES) this.#socket.resume();
  }

  #idle(): void {
    this.#bytesAtIdle = this.#dialogue.wire.received;
    this.#giveTime(PUBLISH_TIMEOUT_MS);
  }

  #giveTime(milliseconds: number): void {
    clearTimeout(this.#idleTimer);
    const what = this.#dialogue.wire.shookHands ? 'published nothing' : 'did not finish the handshake';
    this.#idleTimer = setTimeout(() => this.close(`${what} within ${milliseconds} ms`, 'warn'), milliseconds).unref();
  }
}

import type { SessionGrant } from '../../access/access.ts';
import { PACKET_BYTES } from '../../containers/mpegts/stream-types.ts';
import { Flow } from '../../core/counters.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Reader } from '../../core/reader.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { hostInUrl } from '../../lib/address.ts';
import type { Logger } from '../../log/log.ts';
import type { SrtConnection } from '../../protocols/srt/connection.ts';
import { SrtLink } from '../../protocols/srt/link.ts';
import type { StreamId } from '../../protocols/srt/stream-id.ts';
import type { TsFeed } from '../ts/feed.ts';

/** Output stream and playlist that a viewer plays. */
export interface Playable {
  readonly output: OutputStream;
  readonly playlist: Playlist;
  /** Delay of playback, in milliseconds. */
  readonly delayMs: number;
}

export interface ViewerContext {
  readonly log: Logger;
  /** @param signal aborted when the viewer disconnects */
  readonly admit: (signal: AbortSignal) => Promise<SessionGrant<Playable>>;
  readonly feed: (playable: Playable) => TsFeed;
  readonly onPlaying: () => void;
  readonly onClose: () => void;
}

/** Seven transport packets, the default payload of SRT's live mode. */
const MESSAGE_BYTES = 7 * PACKET_BYTES;
/** A viewer that receives nothing for this long is disconnected. */
const MAX_STALLED_MS = 30_000;

/** Session of one accepted SRT viewer. Starts with a key frame. Closing is idempotent, and logs its reason once. */
export class SrtViewer implements Session {
  readonly kind = 'srt';
  readonly byPlaylist = true;
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly link: SrtLink;
  readonly #connection: SrtConnection;
  readonly #context: ViewerContext;
  readonly #log: Logger;
  #gate = new KeyGate();
  #feed: TsFeed | undefined;
  #messageBytes = MESSAGE_BYTES;
  #id = '';
  #output: OutputStream | undefined;
  #reader: Reader | undefined;
  #undo: (() => void)[] = [];
  readonly #gone = new AbortController();
  #grant: SessionGrant<Playable> | undefined;
  /** Unsent end of a packet. */
  #rest: Buffer | undefined;
  #stalledSince: number | undefined;
  #closed = false;

  constructor(connection: SrtConnection, streamId: StreamId, context: ViewerContext) {
    this.#connection = connection;
    this.#context = context;
    const { peer } = connection;
    const { host, app, stream } = streamId;
    this.#log = context.log.child({ remote: `${hostInUrl(peer.address)}:${peer.port}`, host, app, stream });
    const link = new SrtLink('sent', this.#log);
    this.link = link;
    connection.handlers = {
      counted: (statistics) => link.counted(statistics),
      data: () => this.close('it sends media to a port for viewers', 'warn'),
      writable: () => this.#resume(),
      close: (reason) => this.close(reason),
    };
  }

  get id(): string {
    return this.#id;
  }

  /** Waits for admission, possibly by other nodes, and plays. */
  async open(): Promise<void> {
    this.#connection.read();
    try {
      const grant = await this.#context.admit(this.#gone.signal);
      this.#grant = grant;
      if (this.#closed) return grant.end('the viewer left');
      try {
        this.#play(grant);
      } catch (error) {
        grant.refuse(error);
        throw error;
      }
    } catch (error) {
      if (error instanceof KilnError) return this.close(`refused: ${error.message}`, 'debug');
      this.#log.error({ err: error }, 'the SRT session failed');
      this.close('internal error', 'warn');
    }
  }

  /** @returns false when the viewer takes no more for now */
  #packet(packet: Packet): boolean {
    if (this.#gate.waits && !this.#passes(packet)) return true;
    const { data } = packet;
    this.out.add(data.length, Date.now());
    this.#output?.counters.sentTo('srt', data.length);
    return this.#send(data);
  }

  kick(): void {
    this.#output?.input.kicked.add(this.#id);
    this.close('the viewer was disconnected by the management API');
  }

  /** Closes a viewer that has stalled. */
  check(now: number): void {
    if (this.#stalledSince !== undefined && now - this.#stalledSince > MAX_STALLED_MS)
      this.close('the viewer does not receive the stream', 'warn');
  }

  /** @param level how the reason is logged */
  close(reason: string, level: 'debug' | 'info' | 'warn' = 'info'): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    const dropped = this.#reader?.dropped ?? 0;
    this.#connection.close((srt) =>
      this.#log[level]({ srt, ...(dropped > 0 && { dropped }) }, `SRT viewer closed: ${reason}`),
    );
    this.#leave();
    this.#grant?.end(reason);
    this.#context.onClose();
  }

  /** @throws streamNotFound when the stream has just ended, nothingPlayable */
  #play(grant: SessionGrant<Playable>): void {
    const { id, found } = grant;
    const { output } = found;
    grant.enter();
    if (output.closed) throw kilnError('streamNotFound', output.name);
    const { maxMessageBytes } = this.#connection;
    if (maxMessageBytes < PACKET_BYTES)
      return this.close(`it does not accept messages of more than ${maxMessageBytes} bytes`, 'warn');
    this.#messageBytes = Math.min(MESSAGE_BYTES, maxMessageBytes - (maxMessageBytes % PACKET_BYTES));
    this.#id = id;
    this.#output = output;
    const feed = this.#context.feed(found);
    this.#feed = feed;
    if (feed.hasVideo) this.#gate.silence();
    const { reader, detach } = feed.attach({
      packet: (packet) => this.#packet(packet),
      close: (reason) => this.#finish(reason),
    });
    this.#reader = reader;
    this.#undo = [detach, output.addSession(this)];
    if (feed.tracks.length === 0 && output.awaited.length === 0) throw kilnError('nothingPlayable');
    this.#context.onPlaying();
    grant.limit((reason) => this.close(reason));
    this.#log.info({ session: id }, 'the SRT viewer plays');
  }

  /** Ends after the stream: disconnects once the viewer has received and played what was sent. */
  #finish(reason: string): void {
    if (this.#closed) return;
    this.#leave();
    this.#connection.finish(() => this.close(reason));
  }

  #leave(): void {
    for (const undo of this.#undo) undo();
    this.#undo = [];
  }

  #passes(packet: Packet): boolean {
    // without video any more there is no key frame to wait for
    if (this.#feed?.hasVideo === false) this.#gate = new KeyGate();
    return this.#gate.passes(packet);
  }

  #send(data: Buffer): boolean {
    const length = this.#messageBytes;
    for (let at = 0; at < data.length; at += length) {
      if (this.#connection.send(data.subarray(at, at + length))) continue;
      this.#rest = data.subarray(at);
      this.#stalledSince ??= performance.now();
      return false;
    }
    return true;
  }

  #resume(): void {
    const rest = this.#rest;
    this.#rest = undefined;
    this.#stalledSince = undefined;
    if (rest === undefined || this.#send(rest)) this.#reader?.resume();
  }
}

import type { Duplex } from 'node:stream';
import type { Application } from '../../core/application.ts';
import type { GopCache } from '../../core/gop-cache.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { toSeconds, VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { Track } from '../../core/track.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { OvtError } from '../../protocols/ovt/error.ts';
import {
  GONE,
  isRequest,
  readMessage,
  TRACK_CHANGED,
  writeMessage,
  type Position,
  type Request,
  type Response,
} from '../../protocols/ovt/message.ts';
import { PAYLOAD } from '../../protocols/ovt/packet.ts';
import { Receiver } from '../../protocols/ovt/receiver.ts';
import { parseOvtUrl, type OvtUrl } from '../../protocols/ovt/url.ts';
import type { WireForms } from '../../protocols/ovt/wire-form.ts';
import { Offer } from './offer.ts';
import { Playback, type PlaybackOptions } from './playback.ts';

/** Stream that a client asked for. */
export interface Found {
  readonly application: Application;
  readonly output: OutputStream;
  /** Delay of playback, in milliseconds. */
  readonly delayMs: number;
}

/** Counts a playing client. */
export interface Account {
  sent(bytes: number): void;
  leave(reason: string): void;
}

export interface Played extends Found {
  readonly account: Account;
}

export interface OvtSessionOptions extends Pick<PlaybackOptions, 'kind'> {
  readonly log: Logger;
  /** Session id in the packets. */
  readonly id: number;
  readonly forms: WireForms;
  /** Finds the stream of a URL to describe it; undefined when there is none. @throws KilnError when the client is rejected */
  readonly find: (url: OvtUrl) => Promise<Found | undefined>;
  /** Finds the stream of a URL to play it, as `find` does, and counts the player from then on. */
  readonly play: (url: OvtUrl, session: OvtSession) => Promise<Played | undefined>;
  /** Cache to start a stream from; undefined to start with its next packet. */
  readonly start?: (output: OutputStream) => GopCache | undefined;
  /** Send something every second during playback, even without media, unless the stream is interrupted here. */
  readonly keepAlive?: boolean;
  readonly onPlaying?: () => void;
  readonly onClose: () => void;
}

const LIMITS = { messageBytes: 64 * 1024, frameBytes: 0 };
/** Requests of one connection, and those that may wait for an answer at once. */
const MAX_REQUESTS = 256;
const MAX_PENDING = 8;
const PLAY_TIMEOUT_MS = 20_000;
const CHECK_MS = 1000;
/** A player that reads nothing for this long is disconnected. */
const MAX_STALLED_MS = 30_000;
const MAX_UNREAD_ANSWER_BYTES = 1024 * 1024;
/** Time for the client to read the last answer and close. */
const LINGER_MS = 1000;

/** One client of OVT, from its first byte to its last (docs/compatibility.md#ovt). */
export class OvtSession {
  readonly #stream: Duplex;
  readonly #options: OvtSessionOptions;
  readonly #receiver: Receiver;
  #log: Logger;
  #requests = 0;
  #pending = 0;
  #answered = Promise.resolve();
  #playback: Playback | undefined;
  #account: Account | undefined;
  /** Tracks in the latest description sent to the client. */
  #described: readonly Track[] | undefined;
  /** Limits the time until playback; afterwards runs the periodic check. */
  #timer: NodeJS.Timeout;
  #linger: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(stream: Duplex, options: OvtSessionOptions) {
    this.#stream = stream;
    this.#options = options;
    this.#log = options.log;
    this.#receiver = new Receiver(LIMITS, {
      message: (text) => this.#onMessage(text),
      frame: () => {},
      loss: () => {},
    });
    this.#timer = setTimeout(
      () => this.close(`played nothing within ${PLAY_TIMEOUT_MS} ms`, 'warn'),
      PLAY_TIMEOUT_MS,
    ).unref();
    stream.on('data', (bytes: Buffer) => this.#receive(bytes));
    stream.on('error', (error) => this.close(`connection lost: ${error.message}`));
    stream.on('end', () => this.close('the client closed the connection'));
    stream.on('close', () => this.#gone());
  }

  /**
   * Ends the session: notifies a playing client, then ends the connection.
   * @param level how the reason is logged
   */
  close(reason: string, level: 'info' | 'warn' = 'info'): void {
    if (this.#closed) return;
    const dropped = this.#playback?.dropped ?? 0;
    this.#log[level]({ ...(dropped > 0 && { dropped }) }, `OVT session closed: ${reason}`);
    if (this.#playback !== undefined) this.#notify('stop', reason, { code: this.#playback.isOver ? GONE : 200 });
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#playback?.stop();
    this.#account?.leave(reason);
    this.#stream.end();
    this.#linger = setTimeout(() => this.#stream.destroy(), LINGER_MS).unref();
  }

  #gone(): void {
    this.close('the connection was lost');
    clearTimeout(this.#linger);
    this.#options.onClose();
  }

  #receive(bytes: Buffer): void {
    if (this.#closed) return;
    try {
      this.#receiver.push(bytes);
    } catch (error) {
      if (error instanceof OvtError) return this.close(error.message, 'warn');
      this.#log.error({ err: error }, 'the OVT session failed');
      this.close('internal error', 'warn');
    }
  }

  /** Answers requests one after the other. */
  #onMessage(text: Buffer): void {
    if (this.#closed) return;
    if (++this.#requests > MAX_REQUESTS || ++this.#pending > MAX_PENDING) throw new OvtError('too many requests');
    this.#answered = this.#answered.then(() => this.#answer(text)).finally(() => this.#pending--);
  }

  async #answer(text: Buffer): Promise<void> {
    const message = readMessage(text);
    const id = Number.isInteger(message?.id) ? (message?.id as number) : 0;
    try {
      if (message === undefined) throw kilnError('ovtRequestMalformed');
      const action =
        isRequest(message) && Object.hasOwn(this.#actions, message.application)
          ? this.#actions[message.application]
          : undefined;
      if (action === undefined) throw kilnError('ovtRequestIncomplete');
      await action(message as Request);
    } catch (error) {
      if (!(error instanceof KilnError)) this.#log.error({ err: error }, 'the OVT request failed');
      const { code, status, message: reason } = error instanceof KilnError ? error : kilnError('ovtRequestMalformed');
      const isUnknown = code === 'ovtRequestIncomplete' || code === 'ovtRequestMalformed';
      this.#log.info(
        { code: status, request: String(message?.application).slice(0, 40) },
        `OVT request refused: ${reason}`,
      );
      this.#respond({
        id,
        application: isUnknown ? 'unknown' : String(message?.application),
        code: status,
        message: reason,
      });
    }
  }

  readonly #actions: Readonly<Record<string, (request: Request) => Promise<void>>> = {
    describe: async ({ id, application, target }) => {
      const { offer } = await this.#find(target, this.#options.find);
      this.#described = offer.output.tracks;
      this.#respond({ id, application, code: 200, message: 'ok', contents: offer.describe() });
    },
    play: async ({ id, application, target, after }) => {
      if (this.#closed) return;
      if (this.#playback !== undefined) return this.close('the client asked to play twice', 'warn');
      let account: Account | undefined;
      try {
        const { offer, found } = await this.#find(target, async (url) => {
          const played = await this.#options.play(url, this);
          account = played?.account;
          return played;
        });
        if (this.#closed) return account?.leave('the client has gone');
        this.#account = account;
        const cache = this.#options.start?.(offer.output);
        const from = after && startAfter(after, offer);
        const complete = cache !== undefined && from !== undefined && cache.reaches(from);
        this.#respond({ id, application, code: 200, message: 'ok', ...(complete && { complete }) });
        this.#play(offer, found.delayMs, cache && { cache, from: from ?? Infinity });
      } catch (error) {
        account?.leave((error as Error).message);
        throw error;
      }
    },
    stop: async ({ id, application }) => {
      this.#respond({ id, application, code: 200, message: 'ok' });
      this.close('the client stopped');
    },
  };

  /** @throws ovtStreamNotFound, ovtTracksetNotFound, ovtStreamNotStarted, and what `find` throws */
  async #find(target: string, find: OvtSessionOptions['find']): Promise<{ found: Found; offer: Offer }> {
    const url = parseOvtUrl(target);
    const found = url && (await find(url));
    if (url === undefined || found === undefined) throw kilnError('ovtStreamNotFound', target.slice(0, 300));
    if (found.output.tracks.length === 0 || found.output.closed) throw kilnError('ovtStreamNotStarted');
    return { found, offer: new Offer(found.application, found.output, url.trackset, this.#options.forms) };
  }

  #play(offer: Offer, delayMs: number, start: PlaybackOptions['start']): void {
    const { id, kind, forms } = this.#options;
    const { output } = offer;
    this.#log = this.#log.child({ stream: output.name });
    this.#log.debug('the OVT client plays');
    const hasChanged = this.#described !== undefined && this.#described !== output.tracks;
    if (hasChanged) this.#notify('notify', TRACK_CHANGED, { contents: offer.describe() });
    this.#playback = new Playback(this.#stream, output, {
      kind,
      session: id,
      delayMs,
      forms,
      select: (tracks) => offer.select(tracks),
      ...(start && { start }),
      onTracks: () => this.#notify('notify', TRACK_CHANGED, { contents: offer.describe() }),
      onSent: (bytes) => this.#account?.sent(bytes),
      onEnd: (reason) => this.close(reason),
    });
    clearTimeout(this.#timer);
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref();
    this.#options.onPlaying?.();
  }

  #check(): void {
    if (this.#playback !== undefined && this.#playback.stalledMs > MAX_STALLED_MS)
      this.close('the client does not read the stream', 'warn');
    else if (this.#options.keepAlive && this.#playback?.isInterrupted === false && this.#stream.writableLength === 0)
      this.#notify('notify', 'alive');
  }

  #notify(application: 'notify' | 'stop', message: string, more: Partial<Response> = {}): void {
    this.#respond({ id: 0, application, code: 200, message, ...more });
  }

  #respond(response: Response): void {
    if (this.#closed) return;
    this.#stream.write(writeMessage(PAYLOAD.response, response, Date.now()));
    const unread = this.#playback === undefined && this.#stream.writableLength > MAX_UNREAD_ANSWER_BYTES;
    if (unread) this.close('the client does not read the answers', 'warn');
  }
}

/** Position up to which a client has the stream, in seconds of this node's clock; undefined for another run of it. */
function startAfter({ run, seconds }: Position, offer: Offer): number | undefined {
  if (run !== offer.run) return undefined;
  const shift = offer.output.run?.shift(VIDEO_TIMEBASE) ?? 0;
  return seconds + toSeconds(shift, VIDEO_TIMEBASE);
}

import type { SessionGrant } from '../../access/access.ts';
import { Flow } from '../../core/counters.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Session } from '../../core/session.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { encodeAmf0 } from '../../protocols/rtmp/amf0.ts';
import { statusInfo } from '../../protocols/rtmp/command.ts';
import { MessageType } from '../../protocols/rtmp/message.ts';
import { playMessage, type Play, type PlayLink } from '../../protocols/rtmp/play.ts';
import { FeedDelivery } from '../feed-delivery.ts';
import type { FlvFeed } from '../flv/feed.ts';
import { StallWatch } from '../stall-watch.ts';
import type { Playable } from '../flv/feeds.ts';

export interface ViewerContext {
  /** Starts with the last key frame; with the next one without it. */
  readonly fromLastKey: boolean;
  readonly byPlaylist: boolean;
  /** @param signal aborted when the viewer leaves */
  readonly admit: (signal: AbortSignal) => Promise<SessionGrant<Playable>>;
  readonly feed: (playable: Playable) => FlvFeed;
  readonly onClose: () => void;
}

const NOT_FOUND = 404;
/** Data message by which players may read audio and video: Flash Media Server 3 and later send it. */
const SAMPLE_ACCESS = playMessage(MessageType.DataAmf0, 0, [encodeAmf0('|RtmpSampleAccess', true, true)]);

/** One RTMP client that plays a stream. Closing is idempotent. */
export class RtmpViewer implements Session, Play {
  readonly kind = 'rtmp';
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly byPlaylist: boolean;
  readonly #link: PlayLink;
  readonly #context: ViewerContext;
  readonly #gone = new AbortController();
  #id = '';
  #output: OutputStream | undefined;
  #grant: SessionGrant<Playable> | undefined;
  #delivery: FeedDelivery | undefined;
  #dropped = 0;
  #isPaused = false;
  readonly #unwanted = new Set<'audio' | 'video'>();
  #uncount: (() => void) | undefined;
  readonly #stall = new StallWatch();
  #hasSent = false;
  #closed = false;

  constructor(link: PlayLink, context: ViewerContext) {
    this.#link = link;
    this.#context = context;
    this.byPlaylist = context.byPlaylist;
  }

  get id(): string {
    return this.#id;
  }

  /** Waits for admission, possibly by other nodes, and plays. */
  async open(): Promise<void> {
    try {
      const grant = await this.#context.admit(this.#gone.signal);
      if (this.#closed) return grant.end('the viewer left');
      this.#grant = grant;
      try {
        this.#play(grant);
      } catch (error) {
        grant.refuse(error);
        throw error;
      }
    } catch (error) {
      if (this.#closed) return;
      if (error instanceof KilnError) return this.#refuse(error);
      this.#link.log.error({ err: error }, 'an RTMP player could not be served');
      this.#stop('internal error', 'warn');
    }
  }

  kick(): void {
    this.#output?.input.kicked.add(this.#id);
    this.#stop('the viewer was disconnected by the management API');
  }

  pause(isPaused: boolean): void {
    if (this.#output === undefined || isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) {
      this.#leaveFeed();
      this.#link.streamEof();
      this.#status('NetStream.Pause.Notify', 'Paused.');
      return;
    }
    this.#link.streamBegin();
    this.#status('NetStream.Unpause.Notify', 'Unpaused.');
    this.#deliver();
  }

  receive(kind: 'audio' | 'video', isWanted: boolean): void {
    if (isWanted) this.#unwanted.delete(kind);
    else this.#unwanted.add(kind);
    this.#delivery?.receive(kind, isWanted);
  }

  writable(): void {
    this.#stall.taken();
    this.#delivery?.resume();
  }

  /** Closes a viewer that has stalled. */
  check(now: number): void {
    if (this.#stall.isStalled(now, this.#link.unsent)) this.#end('the viewer does not receive the stream', 'warn');
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    this.#leaveFeed();
    this.#uncount?.();
    const session = this.#id;
    if (this.#output !== undefined)
      this.#link.log.info(
        { session, sent: this.out.totalBytes, ...(this.#dropped > 0 && { dropped: this.#dropped }) },
        `the RTMP viewer has left: ${reason}`,
      );
    this.#grant?.end(reason);
    this.#context.onClose();
  }

  /** @throws streamNotFound when the stream has just ended */
  #play(grant: SessionGrant<Playable>): void {
    const { id, found, stream } = grant;
    const { output } = found;
    grant.enter();
    if (output.closed) throw kilnError('streamNotFound', output.name);
    this.#id = id;
    this.#output = output;
    this.#link.playing();
    this.#link.streamBegin();
    this.#status('NetStream.Play.Reset', `Playing and resetting ${stream}.`);
    this.#status('NetStream.Play.Start', `Started playing ${stream}.`);
    this.#link.send(SAMPLE_ACCESS);
    this.#uncount = output.addSession(this);
    this.#link.log.info({ session: id }, 'the RTMP viewer plays');
    this.#deliver();
    grant.limit((reason) => this.#stop(reason));
  }

  #deliver(): void {
    const { found } = this.#grant ?? {};
    if (found === undefined || this.#closed) return;
    if (found.output.closed) return this.#finish('the stream has ended');
    this.#delivery = new FeedDelivery(this.#context.feed(found), {
      // what waits to be sent may be as much already, after a pause or another play
      fromLastKey: this.#context.fromLastKey && !this.#link.isFull,
      unwanted: this.#unwanted,
      send: (tags) => this.#send(tags),
      ended: (reason) => this.#finish(reason),
    });
    // it may have ended at once
    if (this.#closed) this.#leaveFeed();
  }

  #leaveFeed(): void {
    this.#dropped += this.#delivery?.dropped ?? 0;
    this.#delivery?.close();
    this.#delivery = undefined;
  }

  #send(tags: Buffer): boolean {
    const now = Date.now();
    this.out.add(tags.length, now);
    const { counters } = this.#output ?? {};
    counters?.sentTo('rtmp', tags.length, now);
    if (!this.#hasSent) counters?.viewing.joined('rtmp', Math.max(0, now - this.createdTime) / 1000);
    this.#hasSent = true;
    this.#link.send(tags);
    if (!this.#link.isFull) return true;
    this.#stall.full(this.#link.unsent);
    return false;
  }

  /** The stream has ended. */
  #finish(reason: string): void {
    if (this.#closed) return;
    this.#link.streamEof();
    this.#status('NetStream.Play.UnpublishNotify', reason);
    this.#end(reason, 'info');
  }

  #stop(reason: string, level: 'info' | 'warn' = 'info'): void {
    if (this.#closed) return;
    this.#fail('NetStream.Play.Failed', reason);
    this.#end(reason, level);
  }

  #refuse({ status, message }: KilnError): void {
    this.#fail(status === NOT_FOUND ? 'NetStream.Play.StreamNotFound' : 'NetStream.Play.Failed', message);
    this.#end(`refused: ${message}`, 'debug');
  }

  #fail(code: string, description: string): void {
    this.#link.status(statusInfo('error', code, description));
  }

  #end(reason: string, level: 'debug' | 'info' | 'warn'): void {
    this.close(reason);
    this.#link.ended(reason, level);
  }

  #status(code: string, description: string): void {
    this.#link.status(statusInfo('status', code, description));
  }
}

import { ArrivalClock } from './arrival-clock.ts';
import { CaptionCues } from './captions/caption-cues.ts';
import { Continuity } from './continuity.ts';
import { Counters } from './counters.ts';
import { EventTracks } from './event-tracks.ts';
import { KeptCues } from './kept-cues.ts';
import { KickedSessions } from './kicked-sessions.ts';
import type { Packet } from './packet.ts';
import type { UserData } from './sei-insertion.ts';
import type { Session } from './session.ts';
import type { Source } from './source.ts';
import { VIDEO_TIMEBASE } from './timebase.ts';
import { isMedia, type DataCodec, type DataTrack, type SubtitleTrack, type Track } from './track.ts';
import { StandbySpans } from './standby-spans.ts';
import { Stream } from './stream.ts';
import { OutputStream } from './output-stream.ts';
import { writeCue, type SubtitleCue } from './subtitle-cue.ts';
import { SubtitleTracks } from './subtitle-tracks.ts';
import type { CaptionsConfig, SubtitlesConfig } from '../config/model.ts';

/** A cue of a subtitle track of the stream. */
export interface TimedCue {
  readonly track: SubtitleTrack;
  /** Milliseconds from the time of the media that arrived last. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly cue: SubtitleCue;
}

/** A step of the newest media time beyond this is a jump of the source's clock: what waits moves with it. */
const JUMP_SECONDS = 10;
/** Most cues of a stream whose time has not come, and bytes of them. */
const MAX_WAITING_CUES = 1000;
const MAX_WAITING_BYTES = 1024 * 1024;

export interface InputOptions {
  /** State from the stream before, and for the next one. */
  readonly continuity?: Continuity;
  /** Another node has the stream; viewers of this one get it through here. */
  readonly isRelay?: boolean;
  /** The provider makes its output stream, as the origin describes it, without output profiles. */
  readonly isPassthrough?: boolean;
  /** The management API lists it before its tracks are known. */
  readonly isListed?: boolean;
  /** Subtitle tracks that it has beside those of its source. */
  readonly subtitles?: SubtitlesConfig | undefined;
  /** Closed captions that become cues of these tracks. */
  readonly captions?: CaptionsConfig | undefined;
  /** Outlives its publishers, which have input streams of their own: something else is shown between them. */
  readonly hasStandby?: boolean;
}

/** A stream that a provider writes into. The provider must disconnect on `close`, with which others end the stream. */
export class InputStream extends Stream {
  readonly continuity: Continuity;
  readonly arrival = new ArrivalClock();
  /** Viewers who stay out, of this stream and of the one that continues it. */
  readonly kicked: KickedSessions;
  readonly isRelay: boolean;
  readonly isPassthrough: boolean;
  readonly hasStandby: boolean;
  readonly standby = new StandbySpans();
  /** Its output streams are made: no other is to come. Set through `Application.outputsMade`. */
  hasOutputs = false;
  readonly #isListed: boolean;
  #source: Source;
  #handsOver = false;
  #isVacant = false;
  readonly #events = new EventTracks();
  readonly #subtitles: SubtitleTracks;
  readonly #captions: CaptionCues | undefined;
  /** Cues whose time has not come, in its order. */
  #cues: readonly Packet[] = [];
  /** Media time, in seconds, that their times were last compared with. */
  #cuesAt = 0;
  readonly #keptCues: KeptCues;
  /** Whether cues of the stream before go on in this one. */
  #hasInherited = false;
  readonly #outputs = new Map<string, OutputStream>();

  constructor(name: string, source: Source, parent: Counters, options: InputOptions = {}) {
    const { continuity = new Continuity(), isRelay = false, isPassthrough = false, isListed = false } = options;
    super(name, new Counters(parent));
    this.#source = source;
    this.continuity = continuity;
    this.kicked = new KickedSessions(continuity);
    this.isRelay = isRelay;
    this.isPassthrough = isPassthrough;
    this.hasStandby = options.hasStandby === true;
    this.#isListed = isListed;
    this.#subtitles = new SubtitleTracks(options.subtitles);
    this.#captions = options.captions && new CaptionCues(options.captions, (label) => this.#subtitles.of(label));
    this.#keptCues = new KeptCues(continuity);
  }

  get source(): Source {
    return this.#source;
  }

  /** Another publisher has come, or the last one has left: then the source has no connection. */
  replaceSource(source: Source): void {
    this.#source = source;
  }

  /** Its publisher is away, and something else is shown: any publisher may have the name. */
  get isVacant(): boolean {
    return this.#isVacant;
  }

  set isVacant(isVacant: boolean) {
    if (isVacant === this.#isVacant) return;
    this.#isVacant = isVacant;
    this.emit('handsOver');
  }

  /** The stream moves to another node: its publisher was asked to reconnect there, or its task has left. That node may take the name. */
  get handsOver(): boolean {
    return this.#handsOver;
  }

  set handsOver(handsOver: boolean) {
    if (handsOver === this.#handsOver) return;
    this.#handsOver = handsOver;
    this.emit('handsOver');
  }

  /** Whether the management API shows it. */
  get listed(): boolean {
    return this.#isListed || this.tracks.length > 0;
  }

  get outputs(): ReadonlyMap<string, OutputStream> {
    return this.#outputs;
  }

  /** Viewers of every output. */
  *sessions(): IterableIterator<Session> {
    for (const output of this.#outputs.values()) yield* output.sessions.values();
  }

  /** The viewer of an output under this id. */
  session(id: string): Session | undefined {
    for (const output of this.#outputs.values()) {
      const session = output.sessions.get(id);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /** Makes an output stream; it ends with this stream. Called through `Application.addOutput`. */
  addOutput(name: string): OutputStream {
    const output = new OutputStream(name, this);
    this.#outputs.set(name, output);
    output.once('close', () => this.#outputs.delete(name));
    return output;
  }

  override setTracks(tracks: readonly Track[]): void {
    super.setTracks(this.#events.after(this.#subtitles.after(tracks)));
  }

  /**
   * Writes an event at the time of the media that arrived last. The first of its kind adds a data track to the stream.
   * @param data in the codec's form; must not change afterwards
   * @param target the only tracks that it belongs beside; all of them where there is none
   * @returns false when there is no media yet, or none any more, that it could belong to
   */
  inject(codec: DataCodec, data: Buffer, target?: DataTrack['target']): boolean {
    const { newest } = this.arrival;
    if (this.closed || newest === undefined) return false;
    const { track, isNew } = this.#events.of(codec, target, this.tracks);
    if (isNew) this.setTracks(this.tracks);
    const pts = Math.round((newest * VIDEO_TIMEBASE.den) / VIDEO_TIMEBASE.num);
    this.write({ track, dts: pts, pts, duration: 0, key: true, data });
    return true;
  }

  /**
   * Puts user data into the H.264 and H.265 video of every output stream, into a frame of each track that is no older than
   * the media that arrived last. Where packets go past the output stream, from WebRTC to WebRTC, it is not there.
   * @returns false when there is no media yet, or none any more
   */
  insertUserData(userData: UserData): boolean {
    const { newest } = this.arrival;
    if (this.closed || newest === undefined) return false;
    for (const output of this.#outputs.values()) output.insertUserData(userData, newest);
    return true;
  }

  /** The subtitle track with a label; undefined where there is none. */
  subtitleTrack(label: string): SubtitleTrack | undefined {
    return this.#subtitles.of(label);
  }

  /** The subtitle track that closed captions of a channel become cues of; undefined for none. */
  captionTrack(channel: string): SubtitleTrack | undefined {
    return this.#captions?.trackOf(channel);
  }

  /** Shows the text of a data message in the subtitles that `Captions` names for it, if any. @param language '' for none */
  showText(text: string, language: string): void {
    this.#captions?.text(text, language);
  }

  /**
   * Shows subtitles, from the time of the media that arrived last on. Each is written when its time has come.
   * @returns false when there is no media yet, or none any more; or when too many wait already: then none is shown
   */
  showCues(cues: readonly TimedCue[]): boolean {
    if (!this.#queueCues(cues)) return false;
    const now = Date.now();
    const kept = cues.map(({ track, startMs, durationMs, cue }) => {
      return { ...cue, label: track.publicName ?? '', from: now + startMs, until: now + startMs + durationMs };
    });
    this.#keptCues.add(kept, now);
    return true;
  }

  #queueCues(cues: readonly TimedCue[]): boolean {
    const { newest } = this.arrival;
    if (this.closed || newest === undefined) return false;
    this.#writeCues(newest);
    const packets = cues.map(({ track, startMs, durationMs, cue }): Packet => {
      const pts = Math.round(newest * 1000 + startMs);
      return { track, dts: pts, pts, duration: durationMs, key: true, data: writeCue(cue) };
    });
    const waiting = [...this.#cues, ...packets];
    const bytes = waiting.reduce((sum, { data }) => sum + data.length, 0);
    if (waiting.length > MAX_WAITING_CUES || bytes > MAX_WAITING_BYTES) return false;
    this.#cues = waiting.sort((one, other) => one.pts - other.pts);
    this.#writeCues(newest);
    return true;
  }

  override write(packet: Packet): void {
    this.arrival.note(packet);
    if (!this.#hasInherited && this.arrival.newest !== undefined) this.#inheritCues();
    if (this.#cues.length > 0) this.#writeCues(this.arrival.newest ?? -Infinity);
    // ahead of the frame, whose part they belong in
    if (this.#captions !== undefined && isMedia(packet.track) && this.arrival.newest !== undefined)
      for (const cue of this.#captions.push(packet, this.arrival.newest)) super.write(cue);
    super.write(packet);
  }

  /** Goes on with the cues of the stream before: those that it showed are shown for the rest of their time. */
  #inheritCues(): void {
    this.#hasInherited = true;
    const now = Date.now();
    const cues = this.#keptCues.inherited(now).flatMap(({ label, from, until, settings, text }): TimedCue[] => {
      const track = this.#subtitles.of(label);
      const startMs = Math.max(0, from - now);
      return track === undefined
        ? []
        : [{ track, startMs, durationMs: until - now - startMs, cue: { settings, text } }];
    });
    if (cues.length > 0) this.#queueCues(cues);
  }

  /** @param until media time in seconds */
  #writeCues(until: number): void {
    const step = until - this.#cuesAt;
    this.#cuesAt = until;
    if (step < -JUMP_SECONDS || step > JUMP_SECONDS) this.#cues = this.#cues.map((cue) => later(cue, step));
    const waiting = this.#cues.findIndex(({ pts }) => pts > until * 1000);
    const due = waiting < 0 ? this.#cues : this.#cues.slice(0, waiting);
    if (due.length === 0) return;
    this.#cues = this.#cues.slice(due.length);
    for (const packet of due) super.write(packet);
  }

  override wantKey(): void {
    this.emit('keyWanted');
  }

  /** Ends it for good: nothing continues it, or, where the name was `taken`, something does already. */
  end(reason: string, how?: { readonly taken: boolean }): void {
    this.continuity.end(how);
    this.close(reason);
  }

  protected override closeChildren(reason: string): void {
    for (const output of [...this.#outputs.values()]) output.close(reason);
  }
}

function later(packet: Packet, seconds: number): Packet {
  const pts = packet.pts + Math.round(seconds * 1000);
  return { ...packet, dts: pts, pts };
}

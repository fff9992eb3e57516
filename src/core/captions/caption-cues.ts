import { CaptionDecoder } from '../../codecs/captions/caption-decoder.ts';
import type { CaptionText } from '../../codecs/captions/caption-text.ts';
import type { CaptionsConfig } from '../../config/model.ts';
import type { Packet } from '../packet.ts';
import { isCueText, writeCue } from '../subtitle-cue.ts';
import type { SubtitleTrack } from '../track.ts';
import { CaptionFrames } from './caption-frames.ts';
import { TimedText } from './timed-text.ts';

/** Longest step between frames that a text is shown across, in milliseconds. */
const MAX_STEP_MS = 1000;
/**
 * Milliseconds of a cue. A caption has no end before it ends, and players have what was sent: so its text is sent for so long,
 * again and again while it is shown. A text that follows another one begins at the end of the last cue.
 */
const STEP_MS = 300;
/** Channels of data messages: of any language, or of one. */
const TEXT = /^TEXT(?:-(\w+))?$/;

/** Channel whose texts become cues of a subtitle track. */
interface Channel {
  readonly name: string;
  readonly label: string;
  /** Number that is another when its texts may be others. @param now milliseconds of media time */
  readonly revisionOf: (now: number) => number;
  readonly textsOf: () => readonly CaptionText[];
  revision: number;
  texts: readonly CaptionText[];
  /** End of the last cues. */
  until: number;
}

/** Turns the closed captions of a stream's video, and texts of its data messages, into cues of its subtitle tracks (`Captions/ToWebVtt`). */
export class CaptionCues {
  readonly #frames = new CaptionFrames();
  readonly #decoder: CaptionDecoder;
  /** Channels of the video, and of data messages. */
  readonly #captions: readonly Channel[];
  readonly #texts: readonly Channel[];
  /** By language; '' for any. */
  readonly #timed = new Map<string, TimedText>();
  readonly #trackOf: (label: string) => SubtitleTrack | undefined;
  /** Milliseconds of the last frame of the video, and of the newest media. */
  #at = 0;
  #newest = 0;

  /** @param trackOf finds the subtitle track of a label; undefined where the stream has none */
  constructor({ toWebVtt }: CaptionsConfig, trackOf: (label: string) => SubtitleTrack | undefined) {
    this.#decoder = new CaptionDecoder(toWebVtt.map(({ channel }) => channel));
    this.#trackOf = trackOf;
    const state = () => ({ revision: 0, texts: [], until: -Infinity });
    this.#captions = toWebVtt.flatMap(({ channel: name, label }) => {
      if (TEXT.test(name)) return [];
      const revisionOf = () => this.#decoder.revision(name);
      return [{ name, label, revisionOf, textsOf: () => this.#decoder.texts(name), ...state() }];
    });
    this.#texts = toWebVtt.flatMap(({ channel: name, label }) => {
      const [found, language = ''] = TEXT.exec(name) ?? [];
      if (found === undefined) return [];
      const timed = new TimedText();
      this.#timed.set(language.toLowerCase(), timed);
      const revisionOf = (now: number) => timed.revision(now);
      return [{ name, label, revisionOf, textsOf: () => timed.texts(), ...state() }];
    });
  }

  /** The subtitle track for a channel; undefined for none. */
  trackOf(channel: string): SubtitleTrack | undefined {
    const known = this.#captions.find(({ name }) => name === channel);
    return known && this.#trackOf(known.label);
  }

  /** Shows the text of a data message, in place of the one before. @param language as the message has it; '' for none */
  text(text: string, language: string): void {
    const timed = this.#timed.get(language.toLowerCase()) ?? this.#timed.get('');
    timed?.set(text, this.#newest);
  }

  /**
   * Takes a frame of audio or video.
   * @param newest seconds of the media that arrived last
   * @returns packets of the cues that are shown from frames on that are complete with it
   */
  push(packet: Packet, newest: number): Packet[] {
    const cues: Packet[] = [];
    if (this.#captions.length > 0 && packet.track.type === 'video') {
      for (const { at, data } of this.#frames.push(packet)) {
        this.#decoder.push(data);
        const now = Math.round(at * 1000);
        this.#showAll(this.#captions, now, this.#at, cues);
        this.#at = now;
      }
    }
    if (this.#texts.length > 0) {
      const now = Math.round(newest * 1000);
      this.#showAll(this.#texts, now, this.#newest, cues);
      this.#newest = now;
    }
    return cues;
  }

  /** @param before milliseconds of the frame before */
  #showAll(channels: readonly Channel[], now: number, before: number, cues: Packet[]): void {
    for (const channel of channels) {
      if (now < before) channel.until = -Infinity;
      this.#show(channel, now, now - before, cues);
    }
  }

  /** @param step milliseconds since the frame before */
  #show(channel: Channel, now: number, step: number, cues: Packet[]): void {
    if (now < channel.until) return;
    const wasShown = channel.texts.length > 0;
    const revision = channel.revisionOf(now);
    if (revision !== channel.revision) {
      channel.revision = revision;
      channel.texts = channel.textsOf().filter(({ text }) => isCueText(text));
    }
    const { texts, until } = channel;
    const track = texts.length === 0 ? undefined : this.#trackOf(channel.label);
    if (track === undefined) return;
    // without a gap between two frames
    const start = wasShown && now - until <= Math.min(step, MAX_STEP_MS) ? until : now;
    channel.until = now + (step > MAX_STEP_MS ? STEP_MS : Math.max(STEP_MS, step));
    const duration = channel.until - start;
    for (const text of texts) cues.push({ track, dts: start, pts: start, duration, key: true, data: writeCue(text) });
  }
}

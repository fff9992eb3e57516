import { adtsFrames, buildAudioSpecificConfig } from '../../codecs/aac.ts';
import { tolerant } from '../../codecs/bits.ts';
import { buildOpusHead, parseOpusConfig } from '../../codecs/opus.ts';
import { audioState, pcmForm, type AudioFormat, type AudioState } from '../../containers/elementary/audio.ts';
import type { AudioTrack } from '../../core/track.ts';
import { BITSTREAM } from '../../protocols/ovt/enumerations.ts';
import type { Frame } from '../../protocols/ovt/media.ts';
import { checkForm, isConfiguration } from './frame-form.ts';
import type { SourceUnit, TrackSource } from './track-source.ts';

const OPUS_HEAD = Buffer.from('OpusHead');

/** Audio of an origin that is no node of this cluster. */
export class AudioSource implements TrackSource {
  readonly #described: AudioTrack;
  readonly #state: AudioState;
  #format: AudioFormat | undefined;
  #track: AudioTrack | undefined;

  constructor(described: AudioTrack) {
    this.#described = described;
    this.#state = audioState(described.codec, pcmForm(described));
    // a malformed record is no reason to fail: frames may have a valid one
    const { config } = described;
    if (config !== undefined) tolerant(() => this.#configure(config));
    this.#describe();
  }

  get track(): AudioTrack | undefined {
    return this.#track;
  }

  units(frame: Frame): readonly SourceUnit[] {
    checkForm(this.#described.codec, frame);
    if (frame.bitstream === BITSTREAM.aacAdts) return this.#adts(frame.data);
    if (isConfiguration(frame)) {
      this.#configure(frame.data);
      this.#describe();
      return [];
    }
    const duration = this.#state.samples(frame.data);
    this.#describe();
    return duration === 0 ? [] : [{ data: frame.data, key: true, duration, offset: 0 }];
  }

  #adts(data: Buffer): SourceUnit[] {
    const units: SourceUnit[] = [];
    let offset = 0;
    for (const { header, payload } of adtsFrames(data)) {
      // the record has more than the headers
      if (this.#described.config === undefined || this.#track === undefined) {
        this.#state.configure(buildAudioSpecificConfig(header));
      }
      const duration = this.#state.samples(payload);
      if (duration > 0) units.push({ data: payload, key: true, duration, offset });
      offset += duration;
    }
    this.#describe();
    return units;
  }

  /** Applies a configuration. For Opus, origins send OpusHead or the contents of dOps. */
  #configure(config: Buffer): void {
    const ofOpus = this.#described.codec === 'OPUS' && !config.subarray(0, OPUS_HEAD.length).equals(OPUS_HEAD);
    this.#state.configure(ofOpus ? buildOpusHead(parseOpusConfig(config)) : config);
  }

  #describe(): void {
    const { format } = this.#state;
    if (format === undefined || format === this.#format) return;
    this.#format = format;
    const { config: _, ...described } = this.#described;
    const { config, samplerate, channels } = format;
    this.#track = Object.freeze({
      ...described,
      ...(config && { config }),
      samplerate,
      channels,
      timebase: Object.freeze({ num: 1, den: samplerate }),
    });
  }
}

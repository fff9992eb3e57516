import { adtsLength, buildAdtsHeader } from '../../codecs/aac-adts.ts';
import { parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import { parseOpusConfig } from '../../codecs/opus.ts';
import type { Packet } from '../../core/packet.ts';
import type { AudioTrack, Track } from '../../core/track.ts';
import { threeLetters } from '../language.ts';
import { nalForm } from './nal-form.ts';
import { opusControlHeader } from './opus.ts';
import { DESCRIPTOR, EXTENSION, FORMAT, STREAM_ID, STREAM_TYPE, type Descriptor } from './stream-types.ts';

/** Form in which a track is carried: in PES packets, or in sections that are its data. */
export interface ElementaryForm {
  readonly streamType: number;
  /** stream_id of its PES packets; undefined for sections. */
  readonly streamId: number | undefined;
  readonly descriptors: readonly Descriptor[];
  /** Size of `payload`. @throws BitstreamError */
  size(data: Buffer, key: Packet['key']): number;
  /** Adds the payload for a packet's data to `pieces`: slices of it, and bytes between them. @throws BitstreamError */
  payload(data: Buffer, key: Packet['key'], pieces: Buffer[]): void;
}

/** Error for a track that MPEG-TS cannot carry. */
export class NoPlaceError extends Error {
  override readonly name = 'NoPlaceError';
}

/** metadata_application_format and metadata_format of ID3, each with its identifier. */
const ID3 = Buffer.concat([Buffer.of(0xff, 0xff), Buffer.from(FORMAT.id3), Buffer.of(0xff), Buffer.from(FORMAT.id3)]);
/** No decoder configuration, no DSM-CC. */
const METADATA_FLAGS = 0x0f;
const FIRST_HALF_RATE = 32_000;

/** @throws NoPlaceError, BitstreamError for a malformed configuration */
export function formOf(track: Track): ElementaryForm {
  switch (track.codec) {
    case 'H264':
    case 'H265':
      if (track.config === undefined) throw new NoPlaceError(`${track.codec} without configuration`);
      return nalForm(track.codec, track.config);
    case 'AAC':
      return aac(track);
    case 'OPUS':
      return opus(track);
    case 'MP2':
    case 'MP3':
      return plain(
        track,
        track.samplerate < FIRST_HALF_RATE ? STREAM_TYPE.mpeg2Audio : STREAM_TYPE.mpeg1Audio,
        STREAM_ID.audio,
      );
    case 'AC3':
      return plain(track, STREAM_TYPE.ac3, STREAM_ID.private1, [registration(FORMAT.ac3)]);
    case 'EAC3':
      return plain(track, STREAM_TYPE.eac3, STREAM_ID.private1, [registration(FORMAT.eac3)]);
    case 'ID3v2':
      return plain(track, STREAM_TYPE.metadataPes, STREAM_ID.private1, [
        { tag: DESCRIPTOR.metadata, data: Buffer.concat([ID3, Buffer.of(0, METADATA_FLAGS)]) },
      ]);
    case 'KLV':
      return plain(track, STREAM_TYPE.privatePes, STREAM_ID.private1, [registration(FORMAT.klv)]);
    case 'SCTE35':
      return plain(track, STREAM_TYPE.scte35, undefined);
    default:
      throw new NoPlaceError(`${track.codec} cannot be carried in MPEG-TS`);
  }
}

/** Descriptors of the whole program in the PMT that its tracks need. */
export function programDescriptors(tracks: readonly Track[], program: number): Descriptor[] {
  const descriptors: Descriptor[] = [];
  const has = (codec: Track['codec']): boolean => tracks.some((track) => track.codec === codec);
  if (has('SCTE35')) descriptors.push(registration(FORMAT.scte35));
  if (has('ID3v2')) {
    // metadata_service_id 0, in this program of this transport stream
    const place = Buffer.of(0, 0x1f, program >> 8, program & 0xff);
    descriptors.push({ tag: DESCRIPTOR.metadataPointer, data: Buffer.concat([ID3, place]) });
  }
  return descriptors;
}

function plain(
  track: Track,
  streamType: number,
  streamId: number | undefined,
  own: readonly Descriptor[] = [],
): ElementaryForm {
  return {
    streamType,
    streamId,
    descriptors: [...own, ...languageOf(track)],
    size: (data) => data.length,
    payload: (data, _key, pieces) => void pieces.push(data),
  };
}

/** AAC with an ADTS header on each frame, which has the core only: decoders find SBR and PS in the frames. */
function aac(track: AudioTrack): ElementaryForm {
  if (track.config === undefined) throw new NoPlaceError('AAC without configuration');
  const config = parseAudioSpecificConfig(track.config);
  if (config.samplesPerFrame !== 1024) throw new NoPlaceError('AAC with frames of 960 samples');
  buildAdtsHeader(config, 0);
  return {
    ...plain(track, STREAM_TYPE.aacAdts, STREAM_ID.audio),
    size: (data) => adtsLength(data.length),
    payload: (data, _key, pieces) => void pieces.push(buildAdtsHeader(config, data.length), data),
  };
}

function opus(track: AudioTrack): ElementaryForm {
  const { mappingFamily = 0, channels = track.channels } =
    track.config === undefined ? {} : parseOpusConfig(track.config);
  if (mappingFamily > 1 || channels > 8) throw new NoPlaceError(`Opus of mapping family ${mappingFamily}`);
  const configuration = { tag: DESCRIPTOR.extension, data: Buffer.of(EXTENSION.opus, channels) };
  return {
    ...plain(track, STREAM_TYPE.privatePes, STREAM_ID.private1, [registration(FORMAT.opus), configuration]),
    size: ({ length }) => 3 + Math.floor(length / 255) + length,
    payload: (data, _key, pieces) => void pieces.push(opusControlHeader(data.length), data),
  };
}

function registration(format: string): Descriptor {
  return { tag: DESCRIPTOR.registration, data: Buffer.from(format) };
}

function languageOf({ type, language }: Track): Descriptor[] {
  const code = type !== 'audio' || language === undefined ? undefined : threeLetters(language);
  // audio_type 0: undefined
  return code === undefined ? [] : [{ tag: DESCRIPTOR.language, data: Buffer.from(`${code}\0`) }];
}

/** Whether an error only says that a track or a frame cannot be carried, and is left out. */
export function isForeseen(error: unknown): error is NoPlaceError | BitstreamError {
  return error instanceof NoPlaceError || error instanceof BitstreamError;
}

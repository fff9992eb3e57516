import { buildOpusHead, parseOpusConfig } from '../../codecs/opus.ts';
import { isUsual } from '../../codecs/vui.ts';
import { shownSize, type AudioTrack, type Codec, type MediaTrack, type VideoTrack } from '../../core/track.ts';
import { element, float, ID, text, uint } from './ebml.ts';

const CODEC_IDS: Partial<Record<Codec, string>> = { VP8: 'V_VP8', VP9: 'V_VP9', AV1: 'V_AV1', OPUS: 'A_OPUS' };
const VIDEO = 1;
const AUDIO = 2;
const LIMITED_RANGE = 1;
const FULL_RANGE = 2;
const OPUS_RATE = 48_000;
/** Opus decoders need the 80 ms before their starting point (RFC 9559, 28.5). */
const OPUS_PREROLL_NS = 80_000_000;
const NANOSECONDS = 1_000_000_000;

/** Whether WebM supports tracks of a codec. */
export function isWebm(codec: Codec): boolean {
  return codec in CODEC_IDS;
}

/** Builds a `TrackEntry` (RFC 9559, 5.1.4). @throws BitstreamError for a malformed configuration */
export function trackEntry(track: MediaTrack, trackNumber: number): Buffer {
  return element(
    ID.TrackEntry,
    uint(ID.TrackNumber, trackNumber),
    uint(ID.TrackUID, trackNumber),
    uint(ID.TrackType, track.type === 'video' ? VIDEO : AUDIO),
    uint(ID.FlagLacing, 0),
    text(ID.Language, track.language !== undefined && /^[a-z]{3}$/.test(track.language) ? track.language : 'und'),
    text(ID.CodecID, CODEC_IDS[track.codec] ?? ''),
    ...(track.type === 'video'
      ? [
          ...(track.codec === 'AV1' && track.config !== undefined ? [element(ID.CodecPrivate, track.config)] : []),
          element(
            ID.Video,
            uint(ID.PixelWidth, track.width),
            uint(ID.PixelHeight, track.height),
            ...displayElements(track),
          ),
        ]
      : opus(track)),
  );
}

/** Builds the shown size and colour (RFC 9559, 5.1.4.1.28) where a video differs from the defaults of players. */
function displayElements(track: VideoTrack): Buffer[] {
  const elements: Buffer[] = [];
  const { colour } = track;
  if (track.sar !== undefined) {
    const { width, height } = shownSize(track);
    elements.push(uint(ID.DisplayWidth, Math.round(width)), uint(ID.DisplayHeight, height));
  }
  if (colour !== undefined && !isUsual(colour)) {
    elements.push(
      element(
        ID.Colour,
        uint(ID.MatrixCoefficients, colour.matrix),
        uint(ID.Range, colour.fullRange ? FULL_RANGE : LIMITED_RANGE),
        uint(ID.TransferCharacteristics, colour.transfer),
        uint(ID.Primaries, colour.primaries),
      ),
    );
  }
  return elements;
}

function opus({ config, channels, samplerate }: AudioTrack): Buffer[] {
  const plain = {
    channels,
    preSkip: 0,
    inputSamplerate: samplerate,
    outputGain: 0,
    mappingFamily: 0,
    mapping: undefined,
  };
  const head = config === undefined ? plain : parseOpusConfig(config);
  return [
    element(ID.CodecPrivate, buildOpusHead(head)),
    uint(ID.CodecDelay, Math.round((head.preSkip * NANOSECONDS) / OPUS_RATE)),
    uint(ID.SeekPreRoll, OPUS_PREROLL_NS),
    element(ID.Audio, float(ID.SamplingFrequency, OPUS_RATE), uint(ID.Channels, head.channels)),
  ];
}

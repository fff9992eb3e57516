import { buildAudioSpecificConfig } from '../../codecs/aac.ts';
import { tolerant } from '../../codecs/bits.ts';
import { parseMpegAudioFrame } from '../../codecs/mpeg-audio.ts';
import { joinNals } from '../../codecs/nal.ts';
import { pcmForm } from '../../containers/elementary/audio.ts';
import type { AudioCodec, VideoCodec } from '../../core/track.ts';
import type { RtspMedia } from '../../protocols/rtsp/description.ts';
import { AudioIntake } from '../intake/audio-intake.ts';
import { UNDECLARED } from '../intake/declared.ts';
import { VideoIntake } from '../intake/video-intake.ts';

const VIDEO: Readonly<Record<string, VideoCodec>> = {
  H264: 'H264',
  H265: 'H265',
  HEVC: 'H265',
  VP8: 'VP8',
  VP9: 'VP9',
  AV1: 'AV1',
};
const AUDIO: Readonly<Record<string, AudioCodec>> = {
  OPUS: 'OPUS',
  PCMA: 'PCMA',
  PCMU: 'PCMU',
  G722: 'G722',
  'MPEG4-GENERIC': 'AAC',
  'MP4A-LATM': 'AAC',
};
/** MPEG audio, whose frames have their layer in the header. */
const MPEG_AUDIO = 'MPA';
/** Encoding name of a transport stream in RTP (RFC 2250 section 2). */
export const TRANSPORT_STREAM = 'MP2T';
/** Parameters with parameter sets (RFC 6184 section 8.1, RFC 7798 section 7.1). */
const PARAMETER_SETS = ['sprop-parameter-sets', 'sprop-vps', 'sprop-sps', 'sprop-pps'];

/** Creates the converter of a track. @returns undefined when the first frame identifies it, or it is not supported */
export function trackSource(media: RtspMedia, id: number): VideoIntake | AudioIntake | undefined {
  const {
    kind,
    format: { encoding },
    bitrate,
  } = media;
  const declared = { ...UNDECLARED, bitrate };
  if (kind === 'video') {
    const codec = VIDEO[encoding];
    return codec && videoSource(media, new VideoIntake({ id, codec, declared }));
  }
  const codec = AUDIO[encoding];
  const pcm = pcmForm({ samplerate: media.format.clockRate, channels: media.channels });
  return codec && audioSource(media, new AudioIntake({ id, codec, declared, pcm }));
}

export function isTakenTrack({ kind, format: { encoding } }: RtspMedia): boolean {
  return Object.hasOwn(kind === 'video' ? VIDEO : AUDIO, encoding) || (kind === 'audio' && encoding === MPEG_AUDIO);
}

/** Converter for MPEG audio of the layer of a frame. @throws BitstreamError */
export function mpegAudioSource({ bitrate }: RtspMedia, id: number, frame: Buffer): AudioIntake {
  const { layer } = parseMpegAudioFrame(frame);
  return new AudioIntake({ id, codec: layer === 2 ? 'MP2' : 'MP3', declared: { ...UNDECLARED, bitrate } });
}

/** Applies the parameter sets, if valid: frames may have valid ones. */
function videoSource({ format: { parameters } }: RtspMedia, source: VideoIntake): VideoIntake {
  const sets = PARAMETER_SETS.flatMap((name) => (parameters[name] ?? '').split(','))
    .map((text) => Buffer.from(text, 'base64'))
    .filter(({ length }) => length > 2);
  // sets alone make no frame, but the track becomes known, even if one of them is malformed
  if (source.codec === 'H264' || source.codec === 'H265')
    for (const set of sets) tolerant(() => source.frame(joinNals([set]), 0, 0));
  return source;
}

function audioSource(
  { format: { encoding, parameters, clockRate }, channels }: RtspMedia,
  source: AudioIntake,
): AudioIntake {
  // LATM has its configuration in its packets
  if (encoding !== 'MPEG4-GENERIC') return source;
  const config = Buffer.from(parameters['config'] ?? '', 'hex');
  if (config.length > 0) tolerant(() => source.configure(config));
  if (source.track === undefined)
    tolerant(() => source.configure(buildAudioSpecificConfig({ samplerate: clockRate, channels: channels || 1 })));
  return source;
}

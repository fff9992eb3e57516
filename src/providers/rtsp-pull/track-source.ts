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
  'MPEG4-GENERIC': 'AAC',
  'MP4A-LATM': 'AAC',
};
/** Of which each frame tells its layer. */
const MPEG_AUDIO = 'MPA';
/** Where a description has parameter sets (RFC 6184 section 8.1, RFC 7798 section 7.1). */
const PARAMETER_SETS = ['sprop-parameter-sets', 'sprop-vps', 'sprop-sps', 'sprop-pps'];

/** What a described track is made of. @returns undefined where the first frame tells, or nothing is taken of the kind */
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

/** Whether a track of this kind can be taken. */
export function isTakenTrack({ kind, format: { encoding } }: RtspMedia): boolean {
  return Object.hasOwn(kind === 'video' ? VIDEO : AUDIO, encoding) || (kind === 'audio' && encoding === MPEG_AUDIO);
}

/** MPEG audio of the layer that a frame is of. @throws BitstreamError */
export function mpegAudioSource({ bitrate }: RtspMedia, id: number, frame: Buffer): AudioIntake {
  const { layer } = parseMpegAudioFrame(frame);
  return new AudioIntake({ id, codec: layer === 2 ? 'MP2' : 'MP3', declared: { ...UNDECLARED, bitrate } });
}

/** What is wrong in the description may be right in the frames. */
function videoSource({ format: { parameters } }: RtspMedia, source: VideoIntake): VideoIntake {
  const sets = PARAMETER_SETS.flatMap((name) => (parameters[name] ?? '').split(','))
    .map((text) => Buffer.from(text, 'base64'))
    .filter(({ length }) => length > 2);
  // there is no picture in them: what is learnt is the track, also where one of them is wrong
  if (source.codec === 'H264' || source.codec === 'H265')
    for (const set of sets) tolerant(() => source.frame(joinNals([set]), 0, 0));
  return source;
}

function audioSource(
  { format: { encoding, parameters, clockRate }, channels }: RtspMedia,
  source: AudioIntake,
): AudioIntake {
  // those of LATM come with its packets
  if (encoding !== 'MPEG4-GENERIC') return source;
  const told = Buffer.from(parameters['config'] ?? '', 'hex');
  if (told.length > 0) tolerant(() => source.configure(told));
  if (source.track === undefined)
    tolerant(() => source.configure(buildAudioSpecificConfig({ samplerate: clockRate, channels: channels || 1 })));
  return source;
}

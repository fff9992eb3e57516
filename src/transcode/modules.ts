import type { Codec, DataCodec } from '../core/track.ts';

/** Codec names of the inventory, as the management API spells them. */
export type InventoryCodec = Exclude<Codec, DataCodec>;

/** ffmpeg's names for each codec; the first available one is used. */
type Names = Readonly<Partial<Record<InventoryCodec, readonly string[]>>>;

export interface SoftwareModule {
  readonly module: string;
  readonly displayName: string;
  readonly mediaType: 'Video' | 'Audio';
  readonly encoders?: Names;
  readonly decoders?: Names;
}

/**
 * Software encoders and decoders, with the names of docs/compatibility.md#transcoding. The first available module of a codec is
 * its default.
 */
export const SOFTWARE: readonly SoftwareModule[] = [
  {
    module: 'default',
    displayName: 'FFmpeg video decoders',
    mediaType: 'Video',
    // ffmpeg's own decoder of AV1 needs hardware
    decoders: { H264: ['h264'], H265: ['hevc'], VP8: ['vp8', 'libvpx'], VP9: ['vp9', 'libvpx-vp9'], AV1: ['libdav1d'] },
  },
  { module: 'openh264', displayName: 'OpenH264', mediaType: 'Video', encoders: { H264: ['libopenh264'] } },
  { module: 'x264', displayName: 'x264', mediaType: 'Video', encoders: { H264: ['libx264'] } },
  { module: 'x265', displayName: 'x265', mediaType: 'Video', encoders: { H265: ['libx265'] } },
  { module: 'libvpx', displayName: 'libvpx', mediaType: 'Video', encoders: { VP8: ['libvpx'], VP9: ['libvpx-vp9'] } },
  {
    module: 'libaom',
    displayName: 'libaom',
    mediaType: 'Video',
    encoders: { AV1: ['libaom-av1'] },
    decoders: { AV1: ['libaom-av1'] },
  },
  { module: 'svtav1', displayName: 'SVT-AV1', mediaType: 'Video', encoders: { AV1: ['libsvtav1'] } },
  {
    module: 'image',
    displayName: 'FFmpeg image encoders',
    mediaType: 'Video',
    encoders: { JPEG: ['mjpeg'], PNG: ['png'], WEBP: ['libwebp'], AVIF: ['libaom-av1', 'libsvtav1'] },
  },
  {
    module: 'default',
    displayName: 'FFmpeg audio decoders',
    mediaType: 'Audio',
    decoders: {
      AAC: ['aac'],
      MP2: ['mp2', 'mp2float'],
      MP3: ['mp3', 'mp3float'],
      OPUS: ['opus', 'libopus'],
      AC3: ['ac3'],
      EAC3: ['eac3'],
      FLAC: ['flac'],
      PCMA: ['pcm_alaw'],
      PCMU: ['pcm_mulaw'],
      G722: ['g722'],
    },
  },
  { module: 'fdkaac', displayName: 'Fraunhofer FDK AAC', mediaType: 'Audio', encoders: { AAC: ['libfdk_aac'] } },
  { module: 'aac', displayName: 'FFmpeg AAC', mediaType: 'Audio', encoders: { AAC: ['aac'] } },
  { module: 'libopus', displayName: 'libopus', mediaType: 'Audio', encoders: { OPUS: ['libopus'] } },
];

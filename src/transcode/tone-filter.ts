import { videoRange, type Colour } from '../codecs/vui.ts';
import type { VideoTrack } from '../core/track.ts';

/** ffmpeg's filters for tone mapping; not every build has them. */
const NEEDED = ['zscale', 'tonemap'];
/** Luminance that becomes 1.0 in linear light, in cd/m2: that of an SDR reference display. */
const NOMINAL_PEAK = 100;

/** By code points of ITU-T H.273, as ffmpeg names them; others count as BT.2020, the usual one of HDR. */
const PRIMARIES: Readonly<Record<number, string>> = { 1: 'bt709', 11: 'smpte431', 12: 'smpte432' };
const MATRICES: Readonly<Record<number, string>> = { 1: 'bt709', 5: 'bt470bg', 6: 'smpte170m' };
const TRANSFERS = { PQ: 'smpte2084', HLG: 'arib-std-b67' } as const;

/** Whether a track has to be mapped to SDR to be encoded in 8 bits. */
export function isHdr({ colour }: VideoTrack): boolean {
  return videoRange(colour) !== 'SDR';
}

/** Whether an ffmpeg with these filters can map HDR to SDR. */
export function canMapTones(filters: ReadonlySet<string>): boolean {
  return NEEDED.every((name) => filters.has(name));
}

/** Filters that convert an HDR track to limited BT.709; none for SDR. */
export function toneFilters(colour: Colour | undefined): string[] {
  const range = videoRange(colour);
  if (range === 'SDR' || colour === undefined) return [];
  const primaries = PRIMARIES[colour.primaries] ?? 'bt2020';
  const matrix = MATRICES[colour.matrix] ?? 'bt2020nc';
  return [
    // VP9 decoders set no colours on frames, and zscale rejects frames with incomplete ones
    `setparams=range=${colour.fullRange ? 'pc' : 'tv'}:color_primaries=${primaries}:color_trc=${TRANSFERS[range]}:colorspace=${matrix}`,
    `zscale=transfer=linear:npl=${NOMINAL_PEAK}`,
    'format=gbrpf32le',
    'zscale=primaries=bt709',
    'tonemap=tonemap=hable:desat=0',
    'zscale=transfer=bt709:matrix=bt709:range=limited',
    'format=yuv420p',
    // tone mapping uses them; encoders would write them into SDR video
    'sidedata=mode=delete:type=MASTERING_DISPLAY_METADATA',
    'sidedata=mode=delete:type=CONTENT_LIGHT_LEVEL',
  ];
}

import { splitAnnexB } from '../../../src/codecs/nal.ts';
import { captionSei, construct608, constructs708, popOn } from './captions.ts';
import { encode } from './ffmpeg-bytes.ts';
import { annexB } from './nal-build.ts';

export const CAPTION_RATE = 25;
/** Seconds from caption to caption. */
const CYCLE = 4;
/** Second of a cycle in which CEA-608 is erased again. */
const ERASED = 3;
/** DF0: visible, two rows of 32 columns, upper centre. */
const WINDOW = Buffer.from('98380569111f11', 'hex');

const ENCODED = {
  H264: [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-x264-params',
    'threads=1:sliced-threads=0:bframes=0',
    '-f',
    'h264',
  ],
  H265: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'bframes=0:log-level=none', '-f', 'hevc'],
} as const;

/**
 * A byte stream of video with a caption every four seconds, which says its number: in CC1 `LINE n` for some three seconds, from about
 * half a second on, and in service 1 of CEA-708 `SERVICE n`.
 */
export async function captionedVideo(codec: keyof typeof ENCODED, seconds: number): Promise<Buffer> {
  const source = `testsrc2=size=160x90:rate=${CAPTION_RATE}:duration=${seconds}`;
  const video = await encode([
    '-f',
    'lavfi',
    '-i',
    source,
    '-pix_fmt',
    'yuv420p',
    '-g',
    String(CAPTION_RATE),
    ...ENCODED[codec],
  ]);
  let frame = 0;
  return annexB(
    splitAnnexB(video, 1e6).flatMap((nal) =>
      isSlice(codec, nal) ? [captionSei(codec, constructsOf(frame++)), nal] : [nal],
    ),
  );
}

function isSlice(codec: keyof typeof ENCODED, nal: Buffer): boolean {
  const [first = 0] = nal;
  return codec === 'H264' ? [1, 5].includes(first & 0x1f) : first >> 1 < 32;
}

function constructsOf(frame: number): Buffer {
  const cycle = CYCLE * CAPTION_RATE;
  const number = Math.floor(frame / cycle);
  const at = frame % cycle;
  const pairs = popOn(`LINE ${number}`);
  const erased = at === ERASED * CAPTION_RATE || at === ERASED * CAPTION_RATE + 1;
  const field = construct608(erased ? [0x14, 0x2c] : pairs[at]);
  if (at === 10) return Buffer.concat([field, constructs708(1, WINDOW)]);
  if (at === 11)
    return Buffer.concat([field, constructs708(1, Buffer.concat([Buffer.of(0x0c), Buffer.from(`SERVICE ${number}`)]))]);
  return Buffer.concat([field, Buffer.from('fa0000', 'hex')]);
}

import { decoded } from './decoded.ts';
import { ffmpeg } from './media-files.ts';

/** Blocks of the picture, each a bit, the lowest first: of the number of the frame, and behind it of the item. */
const FRAME_BITS = 10;
const BITS = 16;
const WIDTH = 320;
const HEIGHT = 180;
const BLOCK = WIDTH / BITS;

export interface NumberedFile {
  /** Below 64. */
  readonly item: number;
  readonly frames: number;
  readonly rate: number;
  /** Frames from one key frame to the next. */
  readonly gop: number;
  readonly size?: string;
  /** Further arguments of the encoder of the picture. */
  readonly video?: readonly string[];
  /** Arguments of the encoder of a tone; empty: there is none. */
  readonly audio?: readonly string[];
}

/** What a picture says of itself. */
export interface PictureNumber {
  readonly item: number;
  readonly frame: number;
}

/** Writes a file whose pictures say which item and which frame of it they are. */
export async function writeNumbered(file: string, options: NumberedFile): Promise<void> {
  const {
    item,
    frames,
    rate,
    gop,
    size = `${WIDTH}x${HEIGHT}`,
    video = [],
    audio = ['-c:a', 'aac', '-ac', '2'],
  } = options;
  const blocks = Array.from({ length: BITS }, (_, bit) => {
    const box = `drawbox=x=${bit * BLOCK}:y=0:w=${BLOCK}:h=ih:c=white:t=fill`;
    if (bit < FRAME_BITS) return `${box}:enable='gte(mod(n/${2 ** bit}\\,2)\\,1)'`;
    return item & (2 ** (bit - FRAME_BITS)) ? box : 'null';
  });
  const length = `d=${frames / rate}`;
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-bf', '0'];
  const groups = ['-g', `${gop}`, '-keyint_min', `${gop}`, '-sc_threshold', '0'];
  await ffmpeg(
    ...['-f', 'lavfi', '-i', `color=black:s=${WIDTH}x${HEIGHT}:r=${rate}:${length}`],
    ...(audio.length > 0 ? ['-f', 'lavfi', '-i', `sine=${300 + 100 * (item % 8)}:r=48000:${length}`] : []),
    ...[
      '-vf',
      `${blocks.join()},scale=${size.replace('x', ':')}:flags=neighbor`,
      ...codec,
      ...groups,
      ...video,
      ...audio,
    ],
    file,
  );
}

/**
 * What the pictures of a media file say, in the order in which they are shown.
 * @param media its bytes or its path
 * @throws Error with what ffmpeg says of it
 */
export async function readNumbers(media: Buffer | string): Promise<PictureNumber[]> {
  const filter = `crop=iw:ih/2:0:ih/4,scale=${BITS}:1:flags=area,format=gray`;
  const pixels = await decoded(media, ['-vf', filter, '-fps_mode', 'passthrough', '-f', 'rawvideo']);
  return Array.from({ length: pixels.length / BITS }, (_, i) => numberOf(pixels.subarray(i * BITS, (i + 1) * BITS)));
}

function numberOf(blocks: Buffer): PictureNumber {
  const value = blocks.reduce((sum, level, bit) => (level > 128 ? sum + 2 ** bit : sum), 0);
  return { item: value >> FRAME_BITS, frame: value & (2 ** FRAME_BITS - 1) };
}

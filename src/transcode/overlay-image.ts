/** Format and size, in pixels, of an image file. */
export interface ImageHead {
  readonly format: 'png' | 'jpeg';
  readonly width: number;
  readonly height: number;
}

/** Limit of an image, and of the overlay file. */
export const MAX_BYTES = 8 * 1024 * 1024;
const MAX_SIDE = 4096;
const TIMEOUT_MS = 5000;
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/**
 * Fetches an image by http or https.
 * @throws Error if it does not arrive in time, or is too large
 */
export async function fetchImage(url: string): Promise<Buffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (response.status !== 200 || response.body === null) throw new Error(`status ${response.status}`);
  const tooLarge = `larger than ${MAX_BYTES} bytes`;
  if (Number(response.headers.get('content-length')) > MAX_BYTES) {
    await response.body.cancel();
    throw new Error(tooLarge);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error(tooLarge);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Reads format and size of an image from its first bytes.
 * @throws Error if it is neither PNG nor JPEG, or has too many pixels
 */
export function imageHead(bytes: Buffer): ImageHead {
  const head = pngHead(bytes) ?? jpegHead(bytes);
  if (head === undefined) throw new Error('it is neither PNG nor JPEG');
  const { width, height } = head;
  if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) {
    throw new Error(`${width}x${height} is not within 1x1 to ${MAX_SIDE}x${MAX_SIDE}`);
  }
  return head;
}

/** PNG, section 11.2.1: the header chunk is first. */
function pngHead(bytes: Buffer): ImageHead | undefined {
  if (bytes.length < 24 || !bytes.subarray(0, 8).equals(PNG) || bytes.toString('latin1', 12, 16) !== 'IHDR')
    return undefined;
  return { format: 'png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** ITU-T T.81, annex B: segments up to the frame header. */
function jpegHead(bytes: Buffer): ImageHead | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 <= bytes.length;) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1] as number;
    if (marker === 0xff) at += 1;
    else if (isFrame(marker))
      return { format: 'jpeg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}

/** SOF0 to SOF15, without the tables and extensions (DHT, JPG, DAC) among them. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

import type { OverlayImage } from './encoding.ts';

/**
 * A chain of ffmpeg's filters that draws images on what comes out of another, the last one on top. Each is decoded
 * once, as what it is known to be, and held.
 * @param chain filters of one picture, at least one, that end in the size that the images are placed for
 * @param pads begins the names of the pads between them: none else in the same graph may begin so
 */
export function overlayFilters(chain: string, overlays: readonly OverlayImage[], pads: string): string {
  return overlays.reduce((below, { file, format, left, top, width, height, opacity }, index) => {
    const fade = opacity === 100 ? '' : `,colorchannelmixer=aa=${opacity / 100}`;
    const image = `movie=filename=${escaped(file)}:format_name=${format}_pipe,scale=${width}:${height},format=rgba${fade}`;
    const [picture, drawn] = [`[${pads}picture${index}]`, `[${pads}image${index}]`];
    return `${below}${picture};${image}${drawn};${picture}${drawn}overlay=x=${left}:y=${top}`;
  }, chain);
}

/** A value as an option of a filter in a graph: escaped for the one, then for the other. */
function escaped(value: string): string {
  return value.replace(/[\\':]/g, '\\$&').replace(/[\\'[\],;]/g, '\\$&');
}

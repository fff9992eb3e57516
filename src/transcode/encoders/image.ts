/** Pixel format and colours of an image file, and the options of its encoder. */
export interface ImageForm {
  /** Options of the filter `scale`, after the size. */
  readonly colours: string;
  readonly format: string;
  readonly options: readonly string[];
}

/** Colours are what each file format implies: full range for JPEG (JFIF), BT.601 for WebP, RGB for PNG. */
const FORMS: Readonly<Record<string, ImageForm>> = {
  mjpeg: { colours: ':out_color_matrix=bt601:out_range=pc', format: 'yuvj420p', options: ['-q:v', '3'] },
  png: { colours: '', format: 'rgb24', options: ['-pred', 'mixed'] },
  libwebp: {
    colours: ':out_color_matrix=bt601:out_range=tv',
    format: 'yuv420p',
    // NUT needs a codec tag, and ffmpeg has none for WebP
    options: ['-quality', '75', '-compression_level', '2', '-tag:v', 'WEBP'],
  },
  'libaom-av1': {
    colours: ':out_range=tv',
    format: 'yuv420p',
    options: ['-usage', 'realtime', '-cpu-used', '8', '-lag-in-frames', '0', '-crf', '30', '-b:v', '0', '-g', '1'],
  },
  libsvtav1: { colours: ':out_range=tv', format: 'yuv420p', options: ['-preset', '10', '-crf', '35', '-g', '1'] },
};
const PLAIN: ImageForm = { colours: '', format: 'yuv420p', options: [] };

/** Settings of an image encoder. @param encoder ffmpeg's name */
export function imageForm(encoder: string): ImageForm {
  return FORMS[encoder] ?? PLAIN;
}

/** Configured options that an encoder allows, and the names of the refused ones. */
export interface ExtraOptions {
  readonly allowed: ReadonlyArray<readonly [name: string, value: string]>;
  readonly refused: readonly string[];
}

const NONE: ExtraOptions = { allowed: [], refused: [] };
/** Pattern of values. Excludes separators of option lists, filters and paths, and blanks, which no value needs. */
const VALUE = /^[\w.,+-]{1,64}$/;
const MAX_NAME_SHOWN = 40;

/** Tuning that x264 and x265 have under one name. */
const X26X = [
  'aq-mode',
  'aq-strength',
  'chroma-qp-offset',
  'colormatrix',
  'colorprim',
  'crf',
  'deblock',
  'ipratio',
  'me',
  'merange',
  'nr',
  'pbratio',
  'psy-rd',
  'qcomp',
  'qpmax',
  'qpmin',
  'qpstep',
  'ref',
  'subme',
  'transfer',
  'trellis',
  'vbv-bufsize',
  'vbv-maxrate',
  'weightb',
  'aud',
];
const LIBVPX = [
  'arnr-maxframes',
  'arnr-strength',
  'arnr-type',
  'crf',
  'deadline',
  'cpu-used',
  'drop-threshold',
  'error-resilient',
  'max-intra-rate',
  'noise-sensitivity',
  'overshoot-pct',
  'qmax',
  'qmin',
  'quality',
  'sharpness',
  'static-thresh',
  'tune',
  'undershoot-pct',
];
const NVENC = [
  'aq-strength',
  'cq',
  'multipass',
  'qmax',
  'qmin',
  'rc',
  'spatial-aq',
  'temporal-aq',
  'tune',
  'weighted_pred',
];
const QSV = ['extbrc', 'low_delay_brc', 'low_power', 'mbbrc', 'rdo'];
const VAAPI = ['compression_level', 'low_power', 'qmax', 'qmin', 'quality', 'rc_mode'];

/**
 * Options that tune quality, by ffmpeg's name of the encoder. None places key frames, orders frames or counts time, which
 * the profile does; none opens files.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  libx264: [
    ...X26X,
    '8x8dct',
    'b-adapt',
    'b-bias',
    'b-pyramid',
    'cabac',
    'chroma-me',
    'cplxblur',
    'cqm',
    'deadzone-inter',
    'deadzone-intra',
    'direct',
    'fast-pskip',
    'fullrange',
    'level',
    'mixed-refs',
    'nal-hrd',
    'no-8x8dct',
    'no-cabac',
    'no-chroma-me',
    'no-dct-decimate',
    'no-deblock',
    'no-fast-pskip',
    'no-mbtree',
    'no-mixed-refs',
    'no-psy',
    'no-weightb',
    'partitions',
    'psy',
    'ratetol',
    'slice-max-mbs',
    'slice-max-size',
    'slices',
    'weightp',
  ],
  libx265: [
    ...X26X,
    'amp',
    'b-intra',
    'bframe-bias',
    'ctu',
    'cutree',
    'early-skip',
    'fast-intra',
    'level-idc',
    'limit-modes',
    'limit-refs',
    'max-merge',
    'min-cu-size',
    'psy-rdoq',
    'range',
    'rd',
    'rdoq-level',
    'rect',
    'rskip',
    'sao',
    'slices',
    'strong-intra-smoothing',
    'tu-inter-depth',
    'tu-intra-depth',
    'weightp',
  ],
  libsvtav1: [
    'aq-mode',
    'enable-cdef',
    'enable-dlf',
    'enable-restoration',
    'enable-tf',
    'film-grain',
    'max-qp',
    'min-qp',
    'scm',
    'tile-columns',
    'tile-rows',
    'tune',
  ],
  libopenh264: ['allow_skip_frames', 'coder', 'loopfilter', 'max_nal_size', 'qmax', 'qmin', 'rc_mode', 'slices'],
  libvpx: LIBVPX,
  'libvpx-vp9': [
    ...LIBVPX,
    'aq-mode',
    'corpus-complexity',
    'frame-parallel',
    'row-mt',
    'tile-columns',
    'tile-rows',
    'tune-content',
  ],
  'libaom-av1': [
    'aq-mode',
    'cpu-used',
    'crf',
    'denoise-noise-level',
    'drop-threshold',
    'enable-cdef',
    'enable-global-motion',
    'enable-intrabc',
    'enable-palette',
    'enable-restoration',
    'overshoot-pct',
    'qmax',
    'qmin',
    'row-mt',
    'static-thresh',
    'tile-columns',
    'tile-rows',
    'tune',
    'undershoot-pct',
  ],
  h264_nvenc: NVENC,
  hevc_nvenc: NVENC,
  av1_nvenc: NVENC,
  h264_qsv: QSV,
  hevc_qsv: QSV,
  vp9_qsv: QSV,
  av1_qsv: QSV,
  h264_vaapi: VAAPI,
  hevc_vaapi: VAAPI,
  vp8_vaapi: VAAPI,
  vp9_vaapi: VAAPI,
  av1_vaapi: VAAPI,
};

/**
 * Parses `name=value` pairs separated by colons; a name alone switches the option on.
 * @param encoder ffmpeg's name
 */
export function readExtraOptions(text: string | undefined, encoder: string): ExtraOptions {
  if (text === undefined) return NONE;
  const names = Object.hasOwn(ALLOWED, encoder) ? (ALLOWED[encoder] ?? []) : [];
  const allowed: [string, string][] = [];
  const refused: string[] = [];
  for (const option of text.split(':').map((one) => one.trim())) {
    if (option === '') continue;
    const [name = '', value = '1', ...more] = option.split('=').map((part) => part.trim());
    if (names.includes(name) && VALUE.test(value) && more.length === 0) allowed.push([name, value]);
    else refused.push(name.slice(0, MAX_NAME_SHOWN));
  }
  return { allowed, refused };
}

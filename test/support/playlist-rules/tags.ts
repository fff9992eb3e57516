import type { Report } from './rules.ts';

/** Types of attribute values (4.2), as they are written; an array has all values of an enumerated string. */
type Form = keyof typeof FORMS | readonly string[];

const FORMS = {
  integer: /^\d{1,20}$/,
  float: /^\d+(\.\d+)?$/,
  signed: /^-?\d+(\.\d+)?$/,
  hex: /^0[xX][0-9A-F]+$/,
  quoted: /^"[^"]*"$/,
  date: /^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"$/,
  range: /^"\d+(@\d+)?"$/,
  place: /^"\d+@\d+"$/,
  resolution: /^\d+x\d+$/,
  captions: /^("[^"]*"|NONE)$/,
  extension: /^("[^"]*"|0[xX][0-9A-F]+|-?\d+(\.\d+)?)$/,
} as const;

const YES = ['YES'];
const YES_OR_NO = ['YES', 'NO'];
const KEY = { URI: 'quoted', IV: 'hex', KEYFORMAT: 'quoted', KEYFORMATVERSIONS: 'quoted' } as const;
const METHODS = ['NONE', 'AES-128', 'AES-256-GCM', 'SAMPLE-AES', 'SAMPLE-AES-CTR'];
const VARIANT = {
  'BANDWIDTH!': 'integer',
  'AVERAGE-BANDWIDTH': 'integer',
  SCORE: 'float',
  CODECS: 'quoted',
  'SUPPLEMENTAL-CODECS': 'quoted',
  RESOLUTION: 'resolution',
  'HDCP-LEVEL': ['TYPE-0', 'TYPE-1', 'NONE'],
  'ALLOWED-CPC': 'quoted',
  'VIDEO-RANGE': ['SDR', 'HLG', 'PQ'],
  'REQ-VIDEO-LAYOUT': 'quoted',
  'STABLE-VARIANT-ID': 'quoted',
  VIDEO: 'quoted',
  'PATHWAY-ID': 'quoted',
} as const;

/** Attributes by tag; a required one ends with an exclamation mark. Others are ignored, as players do. */
const ATTRIBUTES: Readonly<Record<string, Readonly<Record<string, Form>>>> = {
  'EXT-X-START': { 'TIME-OFFSET!': 'signed', PRECISE: YES_OR_NO },
  'EXT-X-DEFINE': { NAME: 'quoted', VALUE: 'quoted', IMPORT: 'quoted', QUERYPARAM: 'quoted' },
  'EXT-X-PART-INF': { 'PART-TARGET!': 'float' },
  'EXT-X-SERVER-CONTROL': {
    'CAN-SKIP-UNTIL': 'float',
    'CAN-SKIP-DATERANGES': YES,
    'HOLD-BACK': 'float',
    'PART-HOLD-BACK': 'float',
    'CAN-BLOCK-RELOAD': YES,
  },
  'EXT-X-KEY': { 'METHOD!': METHODS, ...KEY },
  'EXT-X-MAP': { 'URI!': 'quoted', BYTERANGE: 'place' },
  'EXT-X-PART': { 'URI!': 'quoted', 'DURATION!': 'float', INDEPENDENT: YES, BYTERANGE: 'range', GAP: YES },
  'EXT-X-DATERANGE': {
    'ID!': 'quoted',
    CLASS: 'quoted',
    'START-DATE': 'date',
    CUE: 'quoted',
    'END-DATE': 'date',
    DURATION: 'float',
    'PLANNED-DURATION': 'float',
    'SCTE35-CMD': 'hex',
    'SCTE35-OUT': 'hex',
    'SCTE35-IN': 'hex',
    'END-ON-NEXT': YES,
  },
  'EXT-X-SKIP': { 'SKIPPED-SEGMENTS!': 'integer', 'RECENTLY-REMOVED-DATERANGES': 'quoted' },
  'EXT-X-PRELOAD-HINT': {
    'TYPE!': ['PART', 'MAP'],
    'URI!': 'quoted',
    'BYTERANGE-START': 'integer',
    'BYTERANGE-LENGTH': 'integer',
  },
  'EXT-X-RENDITION-REPORT': { 'URI!': 'quoted', 'LAST-MSN': 'integer', 'LAST-PART': 'integer' },
  'EXT-X-MEDIA': {
    'TYPE!': ['AUDIO', 'VIDEO', 'SUBTITLES', 'CLOSED-CAPTIONS'],
    URI: 'quoted',
    'GROUP-ID!': 'quoted',
    LANGUAGE: 'quoted',
    'ASSOC-LANGUAGE': 'quoted',
    'NAME!': 'quoted',
    'STABLE-RENDITION-ID': 'quoted',
    DEFAULT: YES_OR_NO,
    AUTOSELECT: YES_OR_NO,
    FORCED: YES_OR_NO,
    'INSTREAM-ID': 'quoted',
    'BIT-DEPTH': 'integer',
    'SAMPLE-RATE': 'integer',
    CHARACTERISTICS: 'quoted',
    CHANNELS: 'quoted',
  },
  'EXT-X-STREAM-INF': {
    ...VARIANT,
    'FRAME-RATE': 'float',
    AUDIO: 'quoted',
    SUBTITLES: 'quoted',
    'CLOSED-CAPTIONS': 'captions',
  },
  'EXT-X-I-FRAME-STREAM-INF': { ...VARIANT, 'URI!': 'quoted' },
  'EXT-X-SESSION-DATA': {
    'DATA-ID!': 'quoted',
    VALUE: 'quoted',
    URI: 'quoted',
    FORMAT: ['JSON', 'RAW'],
    LANGUAGE: 'quoted',
  },
  'EXT-X-SESSION-KEY': { 'METHOD!': METHODS, ...KEY },
  'EXT-X-CONTENT-STEERING': { 'SERVER-URI!': 'quoted', 'PATHWAY-ID': 'quoted' },
};

const NUMBER = /^\d{1,20}$/;
/** Values of the other tags. */
const VALUES: Readonly<Record<string, RegExp>> = {
  EXTM3U: /^$/,
  'EXT-X-VERSION': /^[1-9]\d*$/,
  'EXT-X-INDEPENDENT-SEGMENTS': /^$/,
  'EXT-X-TARGETDURATION': /^[1-9]\d*$/,
  'EXT-X-MEDIA-SEQUENCE': NUMBER,
  'EXT-X-DISCONTINUITY-SEQUENCE': NUMBER,
  'EXT-X-ENDLIST': /^$/,
  'EXT-X-PLAYLIST-TYPE': /^(EVENT|VOD)$/,
  'EXT-X-I-FRAMES-ONLY': /^$/,
  EXTINF: /^\d+(\.\d+)?,/,
  'EXT-X-BYTERANGE': /^\d+(@\d+)?$/,
  'EXT-X-DISCONTINUITY': /^$/,
  'EXT-X-PROGRAM-DATE-TIME': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$/,
  'EXT-X-GAP': /^$/,
  'EXT-X-BITRATE': NUMBER,
};

const ATTRIBUTE = /([A-Z0-9-]+)=("[^"]*"|[^",\s]+)(?:,(?=.)|$)/y;
// oxlint-disable-next-line no-control-regex -- these are what the rule is about; white space between IDs is a tab
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufeff]/;

/** A line of a playlist that is no comment. */
export interface Line {
  /** From 1. */
  readonly at: number;
  /** Without the number sign; undefined for a URI. */
  readonly name: string | undefined;
  /** What follows the colon, or the URI. */
  readonly value: string;
  /** Values as they are written, without quotation marks. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** Reads the lines of a playlist, and checks what can be said of each one alone. Tags that are not known are kept. */
export function readLines(text: string, report: Report): Line[] {
  const lines: Line[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const at = index + 1;
    if (FORBIDDEN.test(line)) report('control-character', at, JSON.stringify(line));
    if (line === '' || (line.startsWith('#') && !line.startsWith('#EXT'))) continue;
    const [, name, value = ''] = /^#([^:]+):?(.*)$/.exec(line) ?? [undefined, undefined, line];
    const attributes = name !== undefined && name in ATTRIBUTES ? readAttributes(name, value, at, report) : new Map();
    if (name !== undefined && VALUES[name]?.test(value) === false) report('tag-value', at, line);
    lines.push({ at, name, value, attributes });
  }
  if (!/^#EXTM3U(\r?\n|$)/.test(text)) report('first-line', 1, text.slice(0, 20));
  return lines;
}

function readAttributes(name: string, list: string, at: number, report: Report): Map<string, string> {
  const attributes = new Map<string, string>();
  const forms = ATTRIBUTES[name] ?? {};
  let end = 0;
  for (ATTRIBUTE.lastIndex = 0; end < list.length; end = ATTRIBUTE.lastIndex) {
    const [, attribute = '', value = ''] = ATTRIBUTE.exec(list) ?? [];
    if (attribute === '') {
      report('attribute-syntax', at, `${name}: ${list.slice(end)}`);
      break;
    }
    if (attributes.has(attribute)) report('attribute-twice', at, `${name}: ${attribute}`);
    const form = forms[attribute] ?? forms[`${attribute}!`] ?? (attribute.startsWith('X-') ? 'extension' : undefined);
    if (form !== undefined && !hasForm(value, form)) report('attribute-form', at, `${name}: ${attribute}=${value}`);
    attributes.set(attribute, value.replaceAll('"', ''));
  }
  for (const required of Object.keys(forms).filter((one) => one.endsWith('!')))
    if (!attributes.has(required.slice(0, -1))) report('attribute-missing', at, `${name}: ${required.slice(0, -1)}`);
  return attributes;
}

function hasForm(value: string, form: Form): boolean {
  return typeof form === 'string' ? FORMS[form].test(value) : form.includes(value);
}

/** Tags by where they may stand (4.4.3 to 4.4.6). */
const MASTER_TAGS: ReadonlySet<string> = new Set([
  'EXT-X-MEDIA',
  'EXT-X-STREAM-INF',
  'EXT-X-I-FRAME-STREAM-INF',
  'EXT-X-SESSION-DATA',
  'EXT-X-SESSION-KEY',
  'EXT-X-CONTENT-STEERING',
]);
const BOTH_TAGS: ReadonlySet<string> = new Set([
  'EXTM3U',
  'EXT-X-VERSION',
  'EXT-X-INDEPENDENT-SEGMENTS',
  'EXT-X-START',
  'EXT-X-DEFINE',
]);
const SINGLE_TAGS: ReadonlySet<string> = new Set([
  'EXTM3U',
  'EXT-X-VERSION',
  'EXT-X-INDEPENDENT-SEGMENTS',
  'EXT-X-START',
  'EXT-X-TARGETDURATION',
  'EXT-X-MEDIA-SEQUENCE',
  'EXT-X-DISCONTINUITY-SEQUENCE',
  'EXT-X-ENDLIST',
  'EXT-X-PLAYLIST-TYPE',
  'EXT-X-I-FRAMES-ONLY',
  'EXT-X-PART-INF',
  'EXT-X-SERVER-CONTROL',
  'EXT-X-SKIP',
  'EXT-X-CONTENT-STEERING',
]);

/** Checks which tags stand together, and how often. */
export function checkTags(lines: readonly Line[], kind: 'media' | 'master', report: Report): void {
  const seen = new Set<string>();
  for (const { name, at } of lines) {
    if (name === undefined) continue;
    const isKnown = name in ATTRIBUTES || name in VALUES;
    if (isKnown && !BOTH_TAGS.has(name) && MASTER_TAGS.has(name) !== (kind === 'master'))
      report('mixed-playlist', at, name);
    if (SINGLE_TAGS.has(name) && seen.has(name)) report('tag-twice', at, name);
    seen.add(name);
  }
  const variables = new Set<string>();
  for (const { at, attributes } of lines.filter(({ name }) => name === 'EXT-X-DEFINE')) {
    const names = ['NAME', 'IMPORT', 'QUERYPARAM'].flatMap((kindOf) => attributes.get(kindOf) ?? []);
    const [variable = ''] = names;
    const isWhole = names.length === 1 && attributes.has('NAME') === attributes.has('VALUE');
    if (!isWhole || variables.has(variable) || (kind === 'master' && attributes.has('IMPORT')))
      report('define-names', at, [...attributes.keys()].join());
    variables.add(variable);
  }
}

import { collect, type Finding, type Report } from './rules.ts';
import { checkTags, readLines, type Line } from './tags.ts';
import { checkVersion } from './version.ts';

const GROUPS = ['AUDIO', 'VIDEO', 'SUBTITLES', 'CLOSED-CAPTIONS'] as const;
/** Attributes that members of one name may have apart in groups of one type (4.4.6.1.1). */
const OWN: ReadonlySet<string> = new Set([
  ...['GROUP-ID', 'URI', 'CHANNELS', 'BIT-DEPTH', 'STABLE-RENDITION-ID', 'INSTREAM-ID', 'SAMPLE-RATE'],
]);

/** A media playlist that a multivariant playlist names. */
export interface Child {
  readonly uri: string;
  readonly iFrames: boolean;
}

/** Checks one multivariant playlist. */
export function checkMasterPlaylist(text: string): Finding[] {
  return collect((report) => {
    const lines = readLines(text, report);
    checkTags(lines, 'master', report);
    checkVersion(lines, report);
    const of = (name: string) => lines.filter((line) => line.name === name);
    checkVariants(lines, report);
    checkMedia(of('EXT-X-MEDIA'), report);
    checkGroups(of('EXT-X-MEDIA'), report);
    checkStableIds(lines, report);
    checkSession(lines, report);
  });
}

/** The media playlists that a multivariant playlist names, each once. */
export function childrenOf(text: string): Child[] {
  const children = new Map<string, Child>();
  for (const { name, value, attributes } of readLines(text, () => {})) {
    const uri = name === undefined ? value : attributes.get('URI');
    const isChild = name === undefined || name === 'EXT-X-MEDIA' || name === 'EXT-X-I-FRAME-STREAM-INF';
    if (isChild && uri !== undefined) children.set(uri, { uri, iFrames: name === 'EXT-X-I-FRAME-STREAM-INF' });
  }
  return [...children.values()];
}

function checkVariants(lines: readonly Line[], report: Report): void {
  const media = lines.filter(({ name }) => name === 'EXT-X-MEDIA');
  const variants = lines.filter(({ name }) => name === 'EXT-X-STREAM-INF');
  const scored = variants.filter(({ attributes }) => attributes.has('SCORE')).length;
  const without = variants.filter(({ attributes }) => attributes.get('CLOSED-CAPTIONS') === 'NONE').length;
  for (const [index, line] of lines.entries()) {
    const { name, at, attributes } = line;
    const isVariant = name === 'EXT-X-STREAM-INF';
    const isIFrames = name === 'EXT-X-I-FRAME-STREAM-INF';
    if (isVariant && lines[index + 1]?.name !== undefined)
      report('variant-uri-missing', at, lines[index + 1]?.name ?? '');
    if (isVariant && index === lines.length - 1) report('variant-uri-missing', at, 'end of the playlist');
    if (!isVariant && !isIFrames) continue;
    const groups = GROUPS.filter((type) => attributes.has(type) && attributes.get(type) !== 'NONE');
    for (const type of groups) {
      const id = attributes.get(type);
      const isThere = media.some((one) => one.attributes.get('TYPE') === type && one.attributes.get('GROUP-ID') === id);
      if (!isThere) report('group-missing', at, `${type}="${id}"`);
    }
    if (!attributes.has('CODECS')) report(groups.length > 0 ? 'group-codecs-missing' : 'codecs-missing', at, name);
    const odd = ['FRAME-RATE', 'AUDIO', 'SUBTITLES', 'CLOSED-CAPTIONS'].filter((one) => attributes.has(one));
    if (isIFrames && odd.length > 0) report('i-frame-attributes', at, odd.join());
    if (isVariant && scored > 0 && !attributes.has('SCORE')) report('score-missing', at, 'no SCORE');
    if (isVariant && without > 0 && attributes.get('CLOSED-CAPTIONS') !== 'NONE')
      report('captions-none', at, 'no NONE');
  }
}

function checkMedia(media: readonly Line[], report: Report): void {
  for (const { at, attributes } of media) {
    const type = attributes.get('TYPE') ?? '';
    const has = (name: string) => attributes.has(name);
    const isCaptions = type === 'CLOSED-CAPTIONS';
    if ((type === 'SUBTITLES' && !has('URI')) || (isCaptions && has('URI'))) report('media-uri', at, type);
    const odd = [
      ...(type === 'AUDIO' ? [] : ['BIT-DEPTH', 'SAMPLE-RATE', 'CHANNELS'].filter(has)),
      ...(type === 'SUBTITLES' ? [] : ['FORCED'].filter(has)),
    ];
    const service = /^(CC[1-4]|SERVICE([1-9]|[1-5]\d|6[0-3]))$/.test(attributes.get('INSTREAM-ID') ?? '');
    if (odd.length > 0 || (isCaptions && !service)) report('media-attributes', at, `${type} ${odd.join()}`);
    if (attributes.get('DEFAULT') === 'YES' && attributes.get('AUTOSELECT') === 'NO')
      report('default-not-selected', at, attributes.get('NAME') ?? '');
    if (type === 'AUDIO' && !has('CHANNELS')) report('channels-missing', at, attributes.get('NAME') ?? '');
  }
}

function checkGroups(media: readonly Line[], report: Report): void {
  const types = Map.groupBy(media, ({ attributes }) => attributes.get('TYPE') ?? '');
  for (const ofType of types.values()) {
    const groups = [...Map.groupBy(ofType, ({ attributes }) => attributes.get('GROUP-ID') ?? '').values()];
    const [first = ''] = groups.map(contentOf);
    for (const group of groups) {
      const at = group[0]?.at ?? 0;
      const names = group.map(({ attributes }) => attributes.get('NAME') ?? '');
      const defaults = group.filter(({ attributes }) => attributes.get('DEFAULT') === 'YES');
      if (new Set(names).size < names.length) report('group-names', at, names.join());
      if (defaults.length > 1) report('group-defaults', at, `${defaults.length} of them`);
      if (contentOf(group) !== first) report('groups-differ', at, `${contentOf(group)}, not ${first}`);
    }
  }
}

/** Members of a group, in any order, with what they must have in common with those of others. */
function contentOf(group: readonly Line[]): string {
  const members = group.map(({ attributes }) =>
    [...attributes]
      .filter(([name]) => !OWN.has(name))
      .toSorted()
      .join(' '),
  );
  return members.toSorted().join('; ');
}

function checkStableIds(lines: readonly Line[], report: Report): void {
  for (const { at, attributes } of lines) {
    const id = attributes.get('STABLE-RENDITION-ID') ?? attributes.get('STABLE-VARIANT-ID') ?? '';
    if (!/^[a-zA-Z0-9+/=._-]*$/.test(id)) report('stable-id', at, id);
  }
}

function checkSession(lines: readonly Line[], report: Report): void {
  const seen = new Set<string>();
  const isRepeated = (key: string): boolean => seen.size === seen.add(key).size;
  const pathways = new Set(
    lines.flatMap(({ name, attributes }) => (name === 'EXT-X-STREAM-INF' ? [attributes.get('PATHWAY-ID') ?? '.'] : [])),
  );
  for (const { name, at, attributes } of lines) {
    if (name === 'EXT-X-SESSION-DATA') {
      const id = `${attributes.get('DATA-ID')} ${attributes.get('LANGUAGE') ?? ''}`;
      if (attributes.has('VALUE') === attributes.has('URI') || isRepeated(id)) report('session-data', at, id);
    }
    if (name === 'EXT-X-SESSION-KEY') {
      const key = [...attributes].toSorted().join();
      if (attributes.get('METHOD') === 'NONE' || isRepeated(key)) report('session-key', at, key);
    }
    const pathway = attributes.get('PATHWAY-ID');
    if (name === 'EXT-X-CONTENT-STEERING' && pathway !== undefined && !pathways.has(pathway))
      report('pathway-unknown', at, pathway);
  }
}

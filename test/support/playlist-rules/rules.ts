type Level = 'MUST' | 'SHOULD';

/**
 * The rules of HLS that are checked: level, section of draft-pantos-hls-rfc8216bis-22, and what holds. What needs a clock
 * or the media themselves is not among them: the pace of updates (6.2.1), bit rates, whether a resource can be fetched.
 * Names say what is wrong.
 */
export const RULES = {
  // text and attributes
  'first-line': ['MUST', '4.4.1.1', 'EXTM3U is the first line'],
  'control-character': ['MUST', '4.1', 'no byte order mark, no control characters'],
  'tag-value': ['MUST', '4.4', 'the value of a tag has the form of its definition'],
  'attribute-syntax': ['MUST', '4.2', 'an attribute list is NAME=value, separated by commas, without white space'],
  'attribute-form': ['MUST', '4.2', 'an attribute has the type of its definition'],
  'attribute-twice': ['MUST', '4.2', 'an attribute stands once in a list'],
  'attribute-missing': ['MUST', '4.4', 'required attributes are there'],
  'tag-twice': ['MUST', '4.4', 'the tag stands once in a playlist'],
  'mixed-playlist': ['MUST', '4.4.6', 'tags of media playlists and of multivariant playlists do not mix'],
  'version-missing': ['MUST', '4.4.1.2', 'EXT-X-VERSION is there when version 1 does not suffice'],
  'version-low': ['MUST', '8', 'EXT-X-VERSION is at least what the playlist needs'],
  'version-high': ['SHOULD', '6.2.1', 'EXT-X-VERSION is no more than what the playlist needs'],
  'define-names': ['MUST', '4.4.2.3', 'EXT-X-DEFINE has exactly one of NAME with VALUE, IMPORT and QUERYPARAM'],
  'start-outside': ['SHOULD', '4.4.2.2', 'EXT-X-START is inside the playlist, and not near its live end'],

  // one media playlist
  'target-duration-missing': ['MUST', '4.4.3.1', 'EXT-X-TARGETDURATION is there'],
  'segment-too-long': ['MUST', '4.4.3.1', 'EXTINF, rounded, is at most the target duration'],
  'extinf-missing': ['MUST', '4.4.4.1', 'each media segment has EXTINF'],
  'uri-missing': ['MUST', '4.4.4', 'the tags of a media segment are followed by its URI'],
  'sequence-late': ['MUST', '4.4.3.2', 'EXT-X-MEDIA-SEQUENCE precedes the first segment'],
  'discontinuity-sequence-late': [
    'MUST',
    '4.4.3.3',
    'EXT-X-DISCONTINUITY-SEQUENCE precedes segments and discontinuities',
  ],
  'byte-range-alone': ['MUST', '4.4.4.2', 'a byte range without offset follows one of the same resource'],
  'key-attributes': ['MUST', '4.4.4.4', 'attributes of a key agree with its METHOD'],
  'map-missing': ['MUST', '3.1.2', 'fMP4 segments have EXT-X-MAP'],
  'map-iv-missing': ['MUST', '4.4.4.5', 'an EXT-X-MAP under AES-128 has a key with IV'],
  'map-without-discontinuity': ['SHOULD', '4.4.4.3', 'another EXT-X-MAP comes with EXT-X-DISCONTINUITY'],
  'i-frames-map-missing': ['SHOULD', '4.4.4.5', 'I-frame playlists have EXT-X-MAP'],
  'i-frames-parts': ['SHOULD', '4.4.4.9', 'I-frame playlists have no parts'],
  'date-form': ['SHOULD', '4.4.4.6', 'dates have a time zone and milliseconds'],
  'date-missing': ['SHOULD', '6.2.1', 'where segments have dates, each one with EXT-X-DISCONTINUITY has one'],
  'dates-overlap': ['MUST', '6.2.1', 'dates are unambiguous: segments overlap by less than a second, and only partly'],
  'dates-drift': ['SHOULD', '6.2.1', 'dates agree with durations between discontinuities'],
  'part-inf-missing': ['MUST', '4.4.3.7', 'EXT-X-PART-INF is there when parts are'],
  'part-too-long': ['MUST', '4.4.4.9', 'a part is at most PART-TARGET'],
  'part-too-short': ['MUST', '4.4.4.9', 'a part is at least 85 % of PART-TARGET, some excepted'],
  'part-old': ['SHOULD', '6.2.2', 'parts are within three target durations of the end'],
  'tag-behind-part': ['MUST', '4.4.4.9', 'tags of a segment precede its first part'],
  'part-hold-back-missing': ['MUST', '4.4.3.8', 'PART-HOLD-BACK is there when EXT-X-PART-INF is'],
  'part-hold-back-low': ['MUST', '4.4.3.8', 'PART-HOLD-BACK is at least twice PART-TARGET'],
  'part-hold-back-short': ['SHOULD', '4.4.3.8', 'PART-HOLD-BACK is at least three times PART-TARGET'],
  'hold-back-low': ['MUST', '4.4.3.8', 'HOLD-BACK is at least three target durations'],
  'skip-boundary-low': ['MUST', '4.4.3.8', 'CAN-SKIP-UNTIL is at least six target durations'],
  'skip-date-ranges-alone': ['MUST', '4.4.3.8', 'CAN-SKIP-DATERANGES comes with CAN-SKIP-UNTIL'],
  'skip-not-offered': ['MUST', '6.2.5.1', 'EXT-X-SKIP comes with CAN-SKIP-UNTIL, and without EXT-X-ENDLIST'],
  'skipped-too-much': ['MUST', '6.2.5.1', 'no segment within CAN-SKIP-UNTIL of the end is skipped'],
  'hint-after-end': ['MUST', '4.4.5.3', 'no EXT-X-PRELOAD-HINT with EXT-X-ENDLIST'],
  'hint-twice': ['SHOULD', '6.2.6', 'one EXT-X-PRELOAD-HINT of a TYPE'],
  'report-absolute': ['MUST', '4.4.5.4', 'the URI of EXT-X-RENDITION-REPORT is relative'],
  'range-without-dates': ['MUST', '4.4.5.1', 'EXT-X-DATERANGE comes with EXT-X-PROGRAM-DATE-TIME'],
  'range-start-missing': ['MUST', '4.4.5.1', 'the first tag of a date range has START-DATE'],
  'range-differs': ['MUST', '4.4.5.1', 'tags of one date range agree'],
  'range-end': ['MUST', '4.4.5.1', 'END-DATE is START-DATE plus DURATION, and not before START-DATE'],
  'range-end-on-next': ['MUST', '4.4.5.1', 'END-ON-NEXT comes with CLASS, without DURATION and END-DATE'],
  'range-cue': ['MUST', '4.4.5.1', 'CUE has not both PRE and POST'],
  'range-splice-length': ['MUST', '4.4.5.1.1', 'a date range with SCTE35-OUT and SCTE35-IN has its duration'],

  // reloads of one media playlist
  'media-sequence-falls': ['MUST', '6.2.2', 'EXT-X-MEDIA-SEQUENCE never falls'],
  'discontinuity-sequence-falls': ['MUST', '6.2.2', 'EXT-X-DISCONTINUITY-SEQUENCE never falls'],
  'discontinuity-number-changed': ['MUST', '6.2.2', 'a segment keeps its discontinuity sequence number'],
  'segment-changed': ['MUST', '6.2.1', 'a segment that stays keeps all that it has'],
  'segment-lost': ['MUST', '6.2.2', 'segments leave in order, from the begin'],
  'part-changed': ['MUST', '6.2.1', 'a part that stays keeps all that it has'],
  'part-lost': ['MUST', '6.2.2', 'parts leave in order, from the begin'],
  'removed-too-early': ['MUST', '6.2.2', 'a live playlist has three target durations when a segment leaves'],
  'removed-from-typed': ['MUST', '6.2.1', 'no segment leaves a playlist with EXT-X-PLAYLIST-TYPE'],
  'vod-changed': ['MUST', '6.2.1', 'a playlist of type VOD does not change'],
  'added-after-end': ['MUST', '4.4.3.4', 'nothing is added after EXT-X-ENDLIST'],
  'end-removed': ['MUST', '6.2.1', 'EXT-X-ENDLIST stays'],
  'target-duration-changed': ['MUST', '6.2.1', 'EXT-X-TARGETDURATION does not change'],
  'header-changed': ['MUST', '6.2.1', 'other tags of the whole playlist do not change'],
  'header-changed-at-end': ['MUST', '6.2.1', 'nor do they with EXT-X-ENDLIST'],
  'range-changed': ['MUST', '4.4.5.1', 'a date range keeps its attributes'],
  'range-lost': ['MUST', '6.2.1', 'a date range stays while a segment is in it'],
  'hint-missed': ['SHOULD', '4.4.5.3', 'the part after a hint is the hinted one'],
  'delta-differs': ['MUST', '6.2.5.1', 'a delta update gives the full playlist of the moment'],

  // multivariant playlists
  'variant-uri-missing': ['MUST', '4.4.6.2', 'EXT-X-STREAM-INF is followed by its URI'],
  'codecs-missing': ['SHOULD', '4.4.6.2', 'EXT-X-STREAM-INF has CODECS'],
  'group-codecs-missing': ['MUST', '4.4.6.1.1', 'EXT-X-STREAM-INF with a group has CODECS'],
  'group-missing': ['MUST', '4.4.6.2', 'groups that are named are there'],
  'captions-none': ['MUST', '4.4.6.2', 'CLOSED-CAPTIONS=NONE stands in all variants or in none'],
  'score-missing': ['SHOULD', '4.4.6.2', 'SCORE stands in all variants or in none'],
  'media-uri': ['MUST', '4.4.6.2.1', 'SUBTITLES have a URI, CLOSED-CAPTIONS have none'],
  'media-attributes': ['MUST', '4.4.6.1', 'attributes of EXT-X-MEDIA agree with its TYPE'],
  'default-not-selected': ['MUST', '4.4.6.1', 'AUTOSELECT is YES where DEFAULT is'],
  'group-names': ['MUST', '4.4.6.1.1', 'NAME is unique in a group'],
  'group-defaults': ['MUST', '4.4.6.1.1', 'a group has at most one DEFAULT'],
  'groups-differ': ['MUST', '4.4.6.1.1', 'groups of one type have the same members'],
  'channels-missing': ['SHOULD', '4.4.6.1', 'EXT-X-MEDIA of AUDIO has CHANNELS'],
  'stable-id': ['MUST', '4.4.6', 'characters of stable identifiers'],
  'i-frame-attributes': ['MUST', '4.4.6.3', 'EXT-X-I-FRAME-STREAM-INF has no attributes of sound and captions'],
  'session-data': ['MUST', '4.4.6.4', 'EXT-X-SESSION-DATA has VALUE or URI, and is unique with its LANGUAGE'],
  'session-key': ['MUST', '4.4.6.5', 'EXT-X-SESSION-KEY is unique, and not of METHOD NONE'],
  'pathway-unknown': ['MUST', '4.4.6.6', 'the PATHWAY-ID of content steering is one of the variants'],

  // renditions of one multivariant playlist
  'target-durations-differ': ['MUST', '6.2.4', 'media playlists have the same target duration'],
  'types-differ': ['MUST', '6.2.4', 'media playlists have the same EXT-X-PLAYLIST-TYPE'],
  'dates-in-some': ['MUST', '6.2.4', 'all media playlists have dates, or none'],
  'dates-differ': ['MUST', '6.2.4', 'media playlists have the same dates for the same media'],
  'discontinuities-differ': ['MUST', '6.2.4', 'matching segments have the same discontinuity sequence number'],
  'server-controls-differ': ['MUST', '6.2.4', 'media playlists have the same EXT-X-SERVER-CONTROL'],
  'ranges-differ': ['MUST', '6.2.4', 'media playlists with date ranges have the same ones'],
  'report-missing': ['MUST', 'B.1', 'low-latency playlists report all other renditions'],
  'not-i-frames': ['MUST', '4.4.6.3', 'the playlist of EXT-X-I-FRAME-STREAM-INF has EXT-X-I-FRAMES-ONLY'],
  'said-twice': ['SHOULD', '4.4.2', 'what the multivariant playlist says for all is not said again'],
} as const satisfies Record<string, readonly [Level, string, string]>;

export type Rule = keyof typeof RULES;

/** A rule that a playlist breaks. */
export interface Finding {
  readonly rule: Rule;
  readonly level: Level;
  /** Of draft-pantos-hls-rfc8216bis-22. */
  readonly section: string;
  /** From 1; 0 stands for the playlist as a whole. */
  readonly line: number;
  readonly text: string;
}

/** Takes a finding: a rule, the line, and what was found there. */
export type Report = (rule: Rule, line: number, found: string) => void;

/** Findings of a check. */
export function collect(check: (report: Report) => void): Finding[] {
  const findings: Finding[] = [];
  check((rule, line, found) => {
    const [level, section, holds] = RULES[rule];
    findings.push({ rule, level, section, line, text: `${holds}: ${found}` });
  });
  return findings;
}

/** Broken MUSTs as lines of text, each once, where it is first. @param except rules that are broken on purpose */
export function faults(findings: readonly Finding[], except: readonly Rule[] = []): string[] {
  const broken = new Map<string, string>();
  for (const { level, rule, section, line, text } of findings)
    if (level === 'MUST' && !except.includes(rule) && !broken.has(`${rule} ${text}`))
      broken.set(`${rule} ${text}`, `${rule} (${section}), line ${line}: ${text}`);
  return [...broken.values()];
}

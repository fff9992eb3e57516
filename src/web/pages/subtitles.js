/** @import { Choice } from './panel.js' */

export const SUBTITLES = 'Subtitles';
/** Value of the option that shows none. */
export const OFF = -1;

/**
 * Label that the viewer chose; '' for none; undefined before a choice. It outlives a player that is started again.
 * @type {string | undefined}
 */
let wanted;

/** @param {string | undefined} label */
export function wantSubtitles(label) {
  wanted = label ?? '';
}

/**
 * Index of the track that the viewer wants, else of the one that is shown by default; `OFF` where there is none.
 * @param {readonly { label: string, isDefault: boolean }[]} tracks
 */
export function wantedSubtitles(tracks) {
  return tracks.findIndex(({ label, isDefault }) => (wanted === undefined ? isDefault : label === wanted));
}

/**
 * The viewer's choice among subtitles, of one option at most where there are none.
 * @param {readonly string[]} labels
 * @param {number} chosen index; `OFF` for none
 * @returns {Choice}
 */
export function subtitleChoice(labels, chosen) {
  return {
    name: SUBTITLES,
    options: [{ value: OFF, label: 'Off' }, ...labels.map((label, value) => ({ value, label }))],
    chosen,
  };
}

/**
 * Sets what WebVTT cue settings say (WebVTT, section 6.3); unknown ones have no effect.
 * @param {VTTCue} cue
 * @param {string} settings such as `line:80% align:start`
 */
export function applySettings(cue, settings) {
  for (const setting of settings.split(/[ \t]+/)) {
    const [name = '', value = ''] = setting.split(/:(.*)/s);
    try {
      applySetting(cue, name, value);
    } catch {
      // a value out of its range: the browser keeps the default
    }
  }
}

/**
 * @param {VTTCue} cue
 * @param {string} name
 * @param {string} value
 */
function applySetting(cue, name, value) {
  const [place = '', align] = value.split(',');
  const number = Number.parseFloat(place);
  if (name === 'vertical' && (value === 'rl' || value === 'lr')) cue.vertical = value;
  if (name === 'align') cue.align = /** @type {AlignSetting} */ (value);
  if (Number.isNaN(number)) return;
  if (name === 'size') cue.size = number;
  if (name === 'position') {
    cue.position = number;
    if (align !== undefined) cue.positionAlign = /** @type {PositionAlignSetting} */ (align);
  }
  if (name !== 'line') return;
  cue.snapToLines = !place.endsWith('%');
  cue.line = number;
  if (align !== undefined) cue.lineAlign = /** @type {LineAlignSetting} */ (align);
}

import { BEGIN } from './raw-program.ts';
import { shown, UploadError, type Place } from './upload-error.ts';

/** A property of a component, as in `DTSTART;TZID=Europe/Berlin:20260328T201500`. Names are in upper case. */
export interface Property extends Place {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly value: string;
}

/** Properties and components between BEGIN and END. */
export interface Component extends Place {
  readonly name: string;
  readonly properties: Property[];
  readonly components: Component[];
}

const MAX_DEPTH = 8;
const NAME = /[A-Za-z0-9-]+/y;
const PARAMETER = /;([A-Za-z0-9-]+)=("[^"]*"|[^";:,]*)((?:,(?:"[^"]*"|[^";:,]*))*)/y;

/** Reads the calendar of a text (RFC 5545, section 3.4). @throws UploadError */
export function readCalendar(text: string): Component {
  const open: Component[] = [];
  let root: Component | undefined;
  for (const property of properties(text)) {
    const { name, value, line, column } = property;
    const parent = open.at(-1);
    if (name === 'BEGIN') {
      const component = { name: value.trim().toUpperCase(), properties: [], components: [], line, column };
      if (parent === undefined && (root !== undefined || component.name !== 'VCALENDAR'))
        throw new UploadError(property, 'the text must be one VCALENDAR');
      if (open.length === MAX_DEPTH) throw new UploadError(property, `components are nested deeper than ${MAX_DEPTH}`);
      parent?.components.push(component);
      root ??= component;
      open.push(component);
    } else if (parent === undefined) {
      throw new UploadError(property, 'the text must be one VCALENDAR');
    } else if (name === 'END') {
      if (value.trim().toUpperCase() !== parent.name)
        throw new UploadError(property, `END:${parent.name} is missing before ${shown(`END:${value}`)}`);
      open.pop();
    } else {
      parent.properties.push(property);
    }
  }
  const left = open.at(-1);
  if (left !== undefined) throw new UploadError(left, `the ${left.name} that begins here has no end`);
  if (root === undefined) throw new UploadError(BEGIN, 'the text must be one VCALENDAR');
  return root;
}

function* properties(text: string): Generator<Property, void, undefined> {
  for (const { line, content } of contentLines(text)) {
    NAME.lastIndex = 0;
    const [name] = NAME.exec(content) ?? [];
    if (name === undefined) throw new UploadError({ line, column: 1 }, 'the line does not begin with a name');
    const parameters = new Map<string, string>();
    let at = name.length;
    for (;;) {
      PARAMETER.lastIndex = at;
      const match = PARAMETER.exec(content);
      if (match === null) break;
      parameters.set((match[1] ?? '').toUpperCase(), (match[2] ?? '').replaceAll('"', ''));
      at += match[0].length;
    }
    if (content[at] !== ':') throw new UploadError({ line, column: at + 1 }, 'a colon is missing here');
    yield { name: name.toUpperCase(), parameters, value: content.slice(at + 1), line, column: 1 };
  }
}

/** Unfolds lines (section 3.1), numbered by their first. */
function* contentLines(text: string): Generator<{ line: number; content: string }, void, undefined> {
  let pending: { line: number; parts: string[] } | undefined;
  for (const [index, raw] of text.split(/\r\n|\n|\r/).entries()) {
    if (/^[ \t]/.test(raw) && pending !== undefined) {
      pending.parts.push(raw.slice(1));
      continue;
    }
    if (pending !== undefined) yield { line: pending.line, content: pending.parts.join('') };
    pending = raw.trim() === '' ? undefined : { line: index + 1, parts: [raw] };
  }
  if (pending !== undefined) yield { line: pending.line, content: pending.parts.join('') };
}

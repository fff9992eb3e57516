import type { TSchema } from 'typebox';
import { elementPath } from '../../config/names.ts';
import { XmlToJson } from '../../config/xml-json.ts';
import { parseXml, type XmlElement } from '../../config/xml.ts';
import type { Checked } from '../sources/definition-form.ts';

/** A definition cannot be read. `message` has one line per problem, each with its file and element. */
export class ChannelFileError extends Error {
  override readonly name = 'ChannelFileError';
}

/** The files of one kind of channel. */
export interface ChannelFileForm<T> {
  /** The root element. */
  readonly root: string;
  /** Of the JSON that the management API would take for the same thing. */
  readonly schema: TSchema;
  /** Key of the part that has the name of the stream. */
  readonly naming: string;
  readonly check: (json: unknown) => Checked<T>;
}

export interface ChannelFileReading<T> {
  readonly value: T;
  /** What in the file has no effect. */
  readonly warnings: readonly string[];
}

/**
 * Reads the definition of a channel from XML. Attributes are taken like elements of their names.
 * @param file names the file in what is found
 * @param name of the stream, unless the file has one
 * @throws ConfigError the text is not well-formed; ChannelFileError it is no such definition
 */
export function readChannelFile<T>(
  { root, schema, naming, check }: ChannelFileForm<T>,
  text: string,
  file: string,
  name: string,
): ChannelFileReading<T> {
  const element = parseXml(text, file);
  if (element.name !== root) throw new ChannelFileError(`${file}: the root element is ${element.name}, not ${root}`);
  const mapper = new XmlToJson();
  const json = mapper.map(schema, withoutAttributes(element), root) as Record<string, unknown>;
  const [twice] = mapper.problems;
  if (twice !== undefined) throw new ChannelFileError(`${file}: ${twice.path} ${twice.message}`);
  const named = json[naming];
  if (typeof named === 'object' && named !== null) json[naming] = { name, ...named };
  const checked = check(json);
  if (!checked.ok) {
    const lines = checked.problems.map(
      ({ path, message }) => `${file}: ${elementPath(root, schema, path)}: ${message}`,
    );
    throw new ChannelFileError(lines.join('\n'));
  }
  return { value: checked.value, warnings: mapper.warnings.map(({ path, message }) => `${path}: ${message}`) };
}

function withoutAttributes(element: XmlElement): XmlElement {
  const { name: _, attributes, children, ...place } = element;
  const given = Object.entries(attributes).map(([name, text]): XmlElement => {
    const capital = name.charAt(0).toUpperCase() + name.slice(1);
    return { ...place, name: capital, attributes: {}, children: [], text: text.trim() };
  });
  return { ...element, attributes: {}, children: [...given, ...children.map(withoutAttributes)] };
}

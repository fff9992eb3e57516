import type { TSchema } from 'typebox';
import { elementPath } from '../../config/names.ts';
import { XmlToJson } from '../../config/xml-json.ts';
import { parseXml, type XmlElement } from '../../config/xml.ts';
import type { Checked } from '../sources/definition-form.ts';

/** A definition that cannot be read. `message` has one line per problem, with its file and element. */
export class ChannelFileError extends Error {
  override readonly name = 'ChannelFileError';
}

/** Format of the files of one kind of channel. */
export interface ChannelFileForm<T> {
  readonly root: string;
  /** Schema of the management API's JSON for the same definition. */
  readonly schema: TSchema;
  /** Key of the part that names the stream. */
  readonly naming: string;
  readonly check: (json: unknown) => Checked<T>;
}

export interface ChannelFileReading<T> {
  readonly value: T;
  /** Parts of the file that have no effect. */
  readonly warnings: readonly string[];
}

/**
 * Reads the definition of a channel from XML. Attributes count as elements of the same name.
 * @param file file name for error messages
 * @param name name of the stream, unless the file has one
 * @throws ConfigError if the text is not well-formed; ChannelFileError if it is no valid definition
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

import type { XmlElement } from './xml.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const VARIABLE = /\$\{env:([A-Za-z_]\w*)(?::([^}]*))?\}/g;

function mapText(element: XmlElement, replace: (text: string) => string): XmlElement {
  const attributes = Object.entries(element.attributes).map(([name, value]) => [name, replace(value)]);
  return {
    ...element,
    attributes: Object.fromEntries(attributes),
    text: replace(element.text),
    children: element.children.map((child) => mapText(child, replace)),
  };
}

/**
 * Fills in `${env:NAME}` and `${env:NAME:default}`; a variable that is not set is empty without a default, and named in
 * the element's `unset`.
 */
export function expandEnvironment(element: XmlElement, env: Environment): XmlElement {
  const filled = mapText(element, (text) =>
    text.replace(VARIABLE, (_, name: string, value = '') => env[name] ?? value),
  );
  return withUnset(filled, element, env);
}

function withUnset(filled: XmlElement, original: XmlElement, env: Environment): XmlElement {
  const unset = Array.from(original.text.matchAll(VARIABLE))
    .filter(([, name = '', value]) => (env[name] ?? value ?? '') === '')
    .map(([, name = '']) => name);
  const children = filled.children.map((child, index) => withUnset(child, original.children[index] ?? child, env));
  return { ...filled, children, ...(unset.length > 0 && { unset }) };
}

const PUBLIC_IP = '${PublicIP}';

export function usesPublicAddress(element: XmlElement): boolean {
  return element.text.includes(PUBLIC_IP) || element.children.some(usesPublicAddress);
}

export function expandPublicAddress(element: XmlElement, address: string): XmlElement {
  return mapText(element, (text) => text.replaceAll(PUBLIC_IP, address));
}

import type { XmlElement } from './xml.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Replaces text and attributes everywhere in an element. */
function mapText(element: XmlElement, replace: (text: string) => string): XmlElement {
  const attributes = Object.entries(element.attributes).map(([name, value]) => [name, replace(value)]);
  return {
    ...element,
    attributes: Object.fromEntries(attributes),
    text: replace(element.text),
    children: element.children.map((child) => mapText(child, replace)),
  };
}

/** Fills in `${env:NAME}` and `${env:NAME:default}`; a variable that is not set is empty without a default. */
export function expandEnvironment(element: XmlElement, env: Environment): XmlElement {
  return mapText(element, (text) =>
    text.replace(/\$\{env:([A-Za-z_]\w*)(?::([^}]*))?\}/g, (_, name: string, value = '') => env[name] ?? value),
  );
}

const PUBLIC_IP = '${PublicIP}';

/** True when `${PublicIP}` stands anywhere in the element. */
export function usesPublicAddress(element: XmlElement): boolean {
  return element.text.includes(PUBLIC_IP) || element.children.some(usesPublicAddress);
}

/** Fills in `${PublicIP}`. */
export function expandPublicAddress(element: XmlElement, address: string): XmlElement {
  return mapText(element, (text) => text.replaceAll(PUBLIC_IP, address));
}

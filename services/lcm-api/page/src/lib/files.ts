// Files that fill in a field.

const LARGEST = 1_000_000;

/** Returns the text of a file. Raises Error if it is too large for a field, or cannot be read. */
export async function textOf(file: File): Promise<string> {
  if (file.size > LARGEST) throw new Error(`This file is too large: it has ${file.size} bytes, and ${LARGEST} are the most.`);
  try {
    return await file.text();
  } catch {
    throw new Error('This file cannot be read.');
  }
}

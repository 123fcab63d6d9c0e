// Makes shown nodes equal to new ones and touches only what differs, so that selections and scroll places survive.

/** Makes the children of `parent` from number `from` on equal to `nodes`; with `keepRest`, later ones stay. */
export function morphChildren(parent, nodes, from = 0, keepRest = false) {
  nodes.forEach((node, i) => {
    const old = parent.childNodes[from + i];
    if (!old) parent.append(node);
    else morph(old, node);
  });
  if (keepRest) return;
  while (parent.childNodes.length > from + nodes.length) parent.lastChild.remove();
}

function morph(old, node) {
  if (old.isEqualNode(node)) return;
  if (old.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) {
    if (node.data.startsWith(old.data)) old.appendData(node.data.slice(old.data.length));
    else old.data = node.data;
  } else if (old.nodeType === Node.ELEMENT_NODE && old.cloneNode(false).isEqualNode(node.cloneNode(false))) {
    morphChildren(old, [...node.childNodes]);
  } else old.replaceWith(node);
}
